"""Tokenizers of the random models: trained on a few sentences, with the special tokens of the real ones."""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

VOCABULARY = 640

# Answers are frequent and become single tokens (" A", " yes", " five"); rare words stay in several pieces.
CORPUS = """
How many fingers does the hand have? A. five B. six C. four D. seven. Final answer: A
How many legs does the dog have? A. four B. five C. three D. six. Final answer: B
How many stripes does the flag have? A. thirteen B. fourteen C. twelve D. eleven. Final answer: C
How many wings does the bird have? A. two B. three C. one D. four. Final answer: D
Is there a cat in the image? Answer with yes or no. Final answer: yes
Is there a dog in the picture? Answer with yes or no. Final answer: no
Is the banana in the image yellow? Answer yes or no. The answer is no
Does the animal in the picture have five legs? Answer yes or no. The answer is yes
What is the color of the strawberry? Is it red, green, blue or yellow? The color is blue
What color is the apple on the table? It is red. What color is the sky? It is green
Answer with a single letter (A, B, C, or D). Final answer: B
Answer with a single letter (A, B, C, or D). Final answer: D
Answer with one number: zero one two three four five six seven eight nine ten. The number is six
Count the objects in the image: 0 1 2 3 4 5 6 7 8 9 10. Answer: 3
Look at the image and count the rows of the chess board. There are eight rows and nine columns
Which of the two lines is longer, the upper line or the lower line? They have the same length
What is the animal in the image? A. cat B. dog C. bird D. horse. Answer: C
Describe the image in detail. The image shows a hand with six fingers on a wooden table
Describe the picture. The picture shows a white horse with five legs behind a wooden fence
Look at the picture and count the legs of the animal. There are five legs. Look again and count the fingers
Look at the two circles in the picture. Which circle is larger, the left circle or the right circle?
Are the two horizontal lines in the image parallel? Are the two circles the same size? Answer yes or no
How many points does the star on the logo have? A. five B. six C. seven D. eight. Answer with a single letter
How many stripes does the shoe have? Count the stripes of the logo and answer with one number
How many rows does the board have? How many columns does the board have? Answer with one number
How many strings does the guitar have? A. six B. five C. seven D. four. Final answer: D
Which country does the flag belong to? Look at the color of the stripes and the number of stars on the flag
Only look at the image. Do not use what you know about the world. Answer the question with what you see
The question is about the image. The usual number is four, but the image shows five
yes, there is a bird in the image
yes, the picture shows a banana
no, there is no bird in the image
no, the picture does not show a banana
A B C D A. B. C. D. (A) (B) (C) (D) yes no yes no
user assistant system USER: ASSISTANT: User: Assistant: You are a helpful assistant. Yes No Answer
"""


def train(
    special: Sequence[str],
    *,
    eos: str,
    pad: str,
    image: str | None = None,
    bos: str | None = None,
    adds_bos: bool = True,
    named: dict[str, str] | None = None,
    **others: str,
) -> PreTrainedTokenizerFast:
    """Train a byte-level tokenizer on the corpus; the special tokens take the first ids.

    ``image`` and ``named`` become attributes of the tokenizer (``image_token``, ``boi_token``, …), from which many
    processors learn how their tokens are written.
    """
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        min_frequency=1,
        special_tokens=list(special),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    backend.train_from_iterator(CORPUS.strip().splitlines(), trainer)
    if bos is not None and adds_bos:
        bos_id = backend.token_to_id(bos)
        backend.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", pair=f"{bos} $A {bos} $B", special_tokens=[(bos, bos_id)]
        )
    attributes = {**({} if image is None else {"image_token": image}), **(named or {})}
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token=bos,
        eos_token=eos,
        pad_token=pad,
        extra_special_tokens=[token for token in special if token not in {bos, eos, pad, image}],
        model_specific_special_tokens=attributes,
        padding_side="left",
        model_max_length=4096,
        clean_up_tokenization_spaces=False,
        **others,
    )
