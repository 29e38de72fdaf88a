"""What models really write, and how it is read: the first valid answer after completed thinking."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unprior.prompts import THINKING_TAGS, YES_NO, is_cut_off, opened_block, parse_answer, thinks

LETTERS = ("A", "B", "C", "D")
NINE = tuple(string.ascii_uppercase[:9])
ALL = tuple(string.ascii_uppercase)

# text, labels, whether the model is known to think, what is read, why
SHAPES: list[tuple[str, tuple[str, ...], bool, str | None, str]] = [
    # A letter, and what stands around it.
    ("A", LETTERS, False, "A", "the letter alone"),
    (" B", LETTERS, False, "B", "with the space that a continuation begins with"),
    ("C.", LETTERS, False, "C", "with a full stop"),
    ("(D)", LETTERS, False, "D", "in brackets"),
    ("[B]", LETTERS, False, "B", "in square brackets"),
    ("A)", LETTERS, False, "A", "with one bracket"),
    ("A:", LETTERS, False, "A", "with a colon"),
    ("\n\nC\n", LETTERS, False, "C", "between empty lines"),
    ("**B**", LETTERS, False, "B", "bold"),
    ("__B__", LETTERS, False, "B", "bold, written the other way"),
    ("`C`", LETTERS, False, "C", "as code"),
    ("```\nD\n```", LETTERS, False, "D", "as a block of code"),
    ('"B"', LETTERS, False, "B", "in quotes"),
    ("'B'", LETTERS, False, "B", "in single quotes, which are no apostrophes"),
    ("<b>C</b>", LETTERS, False, "C", "the b of a tag is not written by the model as an answer"),
    ("<answer>B</answer>", LETTERS, False, "B", "between tags"),
    ("<|begin_of_box|>D<|end_of_box|>", LETTERS, False, "D", "in the box of GLM"),
    (r"\boxed{B}", LETTERS, False, "B", "in a box of LaTeX"),
    (r"$\boxed{\text{C}}$", LETTERS, False, "C", "in a box with text in it"),
    ('{"answer": "B"}', LETTERS, False, "B", "as JSON"),
    ("- B", LETTERS, False, "B", "as an item of a list"),
    ("1.B", LETTERS, False, "B", "behind the number of the question"),
    ("→ D", LETTERS, False, "D", "behind an arrow"),
    # Lower case.
    ("b", LETTERS, False, "B", "lower case"),
    ("(b)", LETTERS, False, "B", "lower case in brackets"),
    ("b)", LETTERS, False, "B", "lower case with a bracket"),
    ("a", LETTERS, False, "A", "nothing follows, so it is no article"),
    ("a.", LETTERS, False, "A", "a full stop follows, so it is no article"),
    ("a) five", LETTERS, False, "A", "a bracket follows, so it is no article"),
    ("option c", LETTERS, False, "C", "named as an option, lower case"),
    ("The answer is b", LETTERS, False, "B", "said to be the answer, lower case"),
    ("The answer is a", LETTERS, False, "A", "said to be the answer, and nothing follows"),
    # A letter and the option's own words.
    ("B. six fingers", LETTERS, False, "B", "as the prompt lists it"),
    ("B.six fingers", LETTERS, False, "B", "without the space"),
    ("B.6 wheels", LETTERS, False, "B", "without the space, and a number follows"),
    ("A. A cat", LETTERS, False, "A", "the label comes before the article"),
    ("A: five", LETTERS, False, "A", "with a colon"),
    ("A - five", LETTERS, False, "A", "with a dash between spaces"),
    ("A (five fingers)", LETTERS, False, "A", "with the text in brackets"),
    ("**A** five fingers", LETTERS, False, "A", "only the label is bold"),
    ("B six fingers", LETTERS, False, "B", "B is no word of its own"),
    ("B\nThe hand has six fingers.", LETTERS, False, "B", "the reason on the next line"),
    ("A\nThe hand has five fingers.", LETTERS, False, "A", "an article does not end its line"),
    # In a sentence.
    ("The answer is B.", LETTERS, False, "B", "in a sentence"),
    ("The answer is (C) because A has five.", LETTERS, False, "C", "the first one"),
    ("Answer: B", LETTERS, False, "B", "behind a colon"),
    ("**Final Answer:** A", LETTERS, False, "A", "behind a bold heading"),
    ("Option B", LETTERS, False, "B", "named as an option"),
    ("Option-B", LETTERS, False, "B", "named as an option with a hyphen"),
    ("Option A shows a hand", LETTERS, False, "A", "named as an option, so it is no article"),
    ("A is correct.", LETTERS, False, "A", "no article stands before a verb"),
    ("A because the hand has five", LETTERS, False, "A", "no article stands before because"),
    ("A, because the hand has five", LETTERS, False, "A", "no article stands before a comma"),
    ("The answer is A six fingers", LETTERS, False, "A", "inside a sentence no article is a capital"),
    ("It must be D here", LETTERS, False, "D", "standing alone"),
    ("Looking at the hand, six fingers: B", LETTERS, False, "B", "at the end"),
    ("C is what I see, not B.", LETTERS, False, "C", "the first one"),
    # The first one, whatever is said about it.
    ("Not A but B", LETTERS, False, "A", "first valid, as the paper says: a mention counts, denied or not"),
    ("I considered A, but the answer is C", LETTERS, False, "A", "first valid: announcing a later one changes nothing"),
    ("Either A or B", LETTERS, False, "A", "first valid"),
    ("A, B, C", LETTERS, False, "A", "first valid"),
    ("The options are (A. 6, B. 2, C. 4), so C", LETTERS, False, "A", "first valid: options that are listed count"),
    # Words, not labels.
    ("A cat is shown", LETTERS, False, None, "the article"),
    ("a dog and a cat", LETTERS, False, None, "the article, lower case"),
    ("I see A dog", LETTERS, False, None, "the article, in odd spelling"),
    ("A CAT IS SHOWN", LETTERS, False, None, "the article, all in capitals"),
    ("A can of soda", LETTERS, False, None, "the article before a noun that is also a verb"),
    ("A car is parked", LETTERS, False, None, "the article before a noun that is a conjunction in French"),
    ('A "stop" sign', LETTERS, False, None, "the article before a quoted word"),
    ("A 6-legged dog", LETTERS, False, None, "the article before a number"),
    ("A so-called dog", LETTERS, False, None, "the article before a hyphenated word"),
    ("**A cat**", LETTERS, False, None, "the article in bold text"),
    ("The answer is a dog", LETTERS, False, None, "the option's own words with an article"),
    ("Answer: A dog", LETTERS, False, "A", "a capital behind “answer:” is the letter, as behind “the answer is”"),
    ("Answer: A six fingers", LETTERS, False, "A", "the letter and its words without a full stop"),
    ("Option: A six", LETTERS, False, "A", "announced as an option"),
    ("A looks correct, B is wrong", LETTERS, False, "A", "a verb does not follow an article"),
    ("A will be the answer, not C", LETTERS, False, "A", "a verb does not follow an article"),
    ("A B C D", LETTERS, False, "A", "the first of a list of letters"),
    ("A vs B", LETTERS, False, "A", "the first of two letters"),
    ("A+B", LETTERS, False, "A", "the first of two letters, no grade"),
    ("A und nicht B", LETTERS, False, "A", "a conjunction does not follow an article"),
    ("The image shows a hand on a", LETTERS, False, None, "an article that the limit of tokens left at the end"),
    ("six fingers", LETTERS, False, None, "the option's own words instead of its letter"),
    ("Because of the colour", LETTERS, False, None, "letters inside words"),
    ("I see DNA strands", LETTERS, False, None, "a letter inside an abbreviation"),
    ("Don't know", LETTERS, False, None, "the D of a contraction"),
    ("B's claim is wrong", LETTERS, False, None, "joined by an apostrophe"),
    ("N/A", LETTERS, False, None, "joined by a slash: not applicable"),
    ("It is C-shaped", LETTERS, False, None, "joined by a hyphen"),
    ("A Q&A page", LETTERS, False, None, "joined by an ampersand"),
    ("At 8 a.m. in Washington, D.C.", LETTERS, False, None, "abbreviations"),
    ("It is 20 °C", LETTERS, False, None, "a unit"),
    ("100 C", LETTERS, False, None, "a unit without its sign"),
    ("C++", LETTERS, False, None, "a name"),
    ("A+", LETTERS, False, None, "a grade"),
    ("3D", LETTERS, False, None, "joined to a number"),
    ("E", LETTERS, False, None, "no label of this question"),
    ("E", (*LETTERS, "E"), False, "E", "a label of this question"),
    ("C", ("A", "B"), False, None, "no label of this question"),
    ("", LETTERS, False, None, "empty"),
    ("  \n", LETTERS, False, None, "nothing but space"),
    ("?!", LETTERS, False, None, "no word at all"),
    # The pronoun, where I is a label.
    ("I think it is B", NINE, False, "B", "the pronoun"),
    ("I'm sure it is C", NINE, False, "C", "the pronoun in a contraction"),
    ("I", NINE, False, "I", "the label alone"),
    ("I.", NINE, False, "I", "the label with a full stop"),
    ("(I) nine", NINE, False, "I", "the label in brackets"),
    ("Option I", NINE, False, "I", "named as an option"),
    ("The answer is I", NINE, False, "I", "said to be the answer"),
    ("The answer, I think, is H", NINE, False, "H", "the pronoun inside a sentence"),
    ("i think so", NINE, False, None, "the pronoun, lower case"),
    ("e.g. a hand", NINE, False, None, "an abbreviation whose first letter is a label"),
    ("um gato e um cachorro", NINE, False, None, "a word of Portuguese"),
    ("Z", ALL, False, "Z", "the last label"),
    # Other languages and scripts.
    ("答案是B。", LETTERS, False, "B", "Chinese has no spaces"),
    ("选项A是正确的", LETTERS, False, "A", "the label touches Chinese on both sides"),
    ("A选项", LETTERS, False, "A", "no article stands before Chinese"),
    ("（Ｂ）", LETTERS, False, "B", "full-width letters and brackets"),
    ("Ｃ．六根手指", LETTERS, False, "C", "full-width full stop"),
    ("答えはDです。", LETTERS, False, "D", "Japanese"),
    ("정답은 B입니다", LETTERS, False, "B", "Korean particles touch the label"),
    ("Ответ: B", LETTERS, False, "B", "Russian"),
    ("Réponse : B", LETTERS, False, "B", "French"),
    ("C'est un chat", LETTERS, False, None, "a French contraction"),
    ("La respuesta es A porque hay cinco", LETTERS, False, "A", "Spanish"),
    ("A resposta é B", LETTERS, False, "B", "the Portuguese article, then the answer"),
    ("Il y a un chat", LETTERS, False, None, "a French verb"),
    ("Die Antwort ist D.", LETTERS, False, "D", "German"),
    ("الإجابة هي B", LETTERS, False, "B", "Arabic"),
    ("B 🎉", LETTERS, False, "B", "with an emoji"),
    ("六根手指", LETTERS, False, None, "the option's own words in Chinese"),
    # Yes and no.
    ("Yes", YES_NO, False, "yes", "capitalised"),
    ("Yes.", YES_NO, False, "yes", "with a full stop"),
    ("NO!", YES_NO, False, "no", "in capitals"),
    ("**No**", YES_NO, False, "no", "bold"),
    ("yEs", YES_NO, False, "yes", "in odd spelling"),
    ("no, yes", YES_NO, False, "no", "the first one"),
    ("It is no, not yes.", YES_NO, False, "no", "the first one"),
    ("I would say yes, not no.", YES_NO, False, "yes", "the first one"),
    ("No, the hand has six fingers. Yes, really.", YES_NO, False, "no", "the first one"),
    ("There is no doubt: yes", YES_NO, False, "no", "first valid: the word counts, whatever it belongs to"),
    ("There are no cats.", YES_NO, False, "no", "the word counts, and here it is what is meant"),
    ("Answer: No", YES_NO, False, "no", "behind a colon"),
    ('{"answer": "yes"}', YES_NO, False, "yes", "as JSON"),
    (r"\boxed{no}", YES_NO, False, "no", "in a box of LaTeX"),
    ("答案是yes。", YES_NO, False, "yes", "touching Chinese"),
    ("ｙｅｓ", YES_NO, False, "yes", "full-width"),
    ("This is a yes/no question: no", YES_NO, False, "no", "yes/no names both, then comes the answer"),
    ("no-one is there", YES_NO, False, None, "joined by a hyphen"),
    ("yesterday", YES_NO, False, None, "inside a word"),
    ("nothing", YES_NO, False, None, "inside a word"),
    ("north", YES_NO, False, None, "inside a word"),
    ("I don't know", YES_NO, False, None, "inside a word, and not is not no"),
    ("None", YES_NO, False, None, "another word"),
    ("Yeah, nope", YES_NO, False, None, "other words than those asked for"),
    ("True", YES_NO, False, None, "another word"),
    ("Y", YES_NO, False, None, "half a word"),
    ("Да", YES_NO, False, None, "Russian"),
    ("是的", YES_NO, False, None, "Chinese"),
    ("oui", YES_NO, False, None, "French"),
    ("A", YES_NO, False, None, "no label of this question"),
    ("", YES_NO, False, None, "empty"),
    # Thinking.
    ("<think>It could be A.</think>\n\nB", LETTERS, False, "B", "completed thinking is removed"),
    ("It could be A.</think>B", LETTERS, False, "B", "the template opened the block"),
    ("It could be A.</think>B", LETTERS, True, "B", "the same, and the model is known to think"),
    ("<think>one</think> A <think>two</think> C", LETTERS, False, "C", "all thinking is removed, and what is between"),
    ("<think></think>yes", YES_NO, True, "yes", "an empty block is completed"),
    ("<think>It is A, no wait", LETTERS, False, None, "cut off"),
    ("<think>one</think> A <think>two", LETTERS, False, None, "cut off in a second block"),
    ("The image shows a hand. Is it A or", LETTERS, True, None, "cut off in a block that the template opened"),
    ("B", LETTERS, True, None, "without a closing tag nobody knows that thinking has ended"),
    ("", LETTERS, True, None, "cut off at once"),
    ("<think>A</think>", LETTERS, False, None, "nothing follows the thinking"),
    ("<thinking>yes</thinking>No", YES_NO, False, "no", "another spelling"),
    ("<REASONING>A</REASONING><CONCLUSION>B</CONCLUSION>", LETTERS, False, "B", "another spelling, in capitals"),
    ("[THINK]A[/THINK]B", LETTERS, False, "B", "as Mistral writes it"),
    ("◁think▷A◁/think▷B", LETTERS, False, "B", "as Kimi-VL writes it"),
    ("◁think▷A or B", LETTERS, False, None, "cut off as Kimi-VL writes it"),
    ("<|channel>thought\nA<channel|>B", LETTERS, False, "B", "as Gemma 4 writes it"),
    (
        "<|channel|>analysis<|message|>A<|end|><|start|>assistant<|channel|>final<|message|>B", LETTERS, False, "B",
        "as gpt-oss writes it",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "labels", "thinking", "expected", "why"), SHAPES, ids=[f"{row[0][:40]!r}: {row[4]}" for row in SHAPES]
)
def test_what_is_read(text: str, labels: tuple[str, ...], thinking: bool, expected: str | None, why: str) -> None:
    assert parse_answer(text, labels, thinking=thinking) == expected, why


def test_labels_of_other_kinds_are_whole_words() -> None:
    assert parse_answer("The second is 2.", ("1", "2", "3")) == "2"
    assert parse_answer("12", ("1", "2")) is None
    assert parse_answer("Dark red, not red", ("red", "dark red")) == "dark red"
    assert parse_answer("答案是乙。", ("甲", "乙")) == "乙"
    assert parse_answer("No.", ("Yes", "No")) == "No"


@pytest.mark.parametrize(("opening", "closing"), THINKING_TAGS)
def test_every_spelling_of_thinking(opening: str, closing: str) -> None:
    whole = f"{opening}\nIs it A? No.\n{closing}\n\nB"
    assert parse_answer(whole, LETTERS) == "B"
    assert parse_answer(whole.removeprefix(opening), LETTERS, thinking=True) == "B"
    cut = whole[: whole.index(closing)]
    assert is_cut_off(cut)
    assert parse_answer(cut, LETTERS) is None
    for texts in (["B", whole], [cut], [whole.removeprefix(opening)]):
        assert thinks(texts)
    assert opened_block(f"<user>?<assistant>{opening}\n") == opening
    assert opened_block(f"<user>?<assistant>{opening}\n{closing}\n\n") == ""


def test_an_ordinary_model_does_not_think() -> None:
    assert not thinks(["B", None, "", "I think it is <B>."])
    assert not is_cut_off("I think it is")


LABELS = st.sampled_from([YES_NO, LETTERS, NINE, ALL, ("1", "2"), ("Yes", "No")])
TEXTS = (
    st.text() | st.text(string.ascii_letters + string.punctuation + " \n") | st.sampled_from([row[0] for row in SHAPES])
)


@given(TEXTS, LABELS, st.booleans())
def test_any_text_can_be_read(text: str, labels: tuple[str, ...], thinking: bool) -> None:
    answer = parse_answer(text, labels, thinking=thinking)
    assert answer is None or (answer in labels and not is_cut_off(text, thinking=thinking))


@given(TEXTS, st.text(), LABELS, st.sampled_from(THINKING_TAGS))
def test_completed_thinking_changes_nothing(
    text: str, thought: str, labels: tuple[str, ...], tags: tuple[str, str]
) -> None:
    opening, closing = tags
    assert parse_answer(f"{opening}{thought}{closing}{text}", labels) == parse_answer(text, labels)


@given(st.sampled_from(YES_NO), st.lists(st.booleans(), min_size=3, max_size=3))
def test_the_case_of_yes_and_no_does_not_matter(word: str, capitals: list[bool]) -> None:
    spelled = "".join(char.upper() if big else char for char, big in zip(word, capitals, strict=False))
    assert parse_answer(f"I say {spelled}.", YES_NO) == word


@given(
    st.sampled_from(ALL), st.sampled_from(["{}", "{}.", "({})", "**{}**", "Answer: {}", "答案是{}。", r"\boxed{{{}}}"])
)
def test_every_label_in_its_usual_shapes(label: str, shape: str) -> None:
    assert parse_answer(shape.format(label), ALL) == label
    assert parse_answer(shape.format(label.lower()), ALL) == label
