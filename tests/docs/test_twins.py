"""Markdown twins: what a page shows stands in its twin, generated or executed parts included."""

from __future__ import annotations

import doctest

from docutils.core import publish_doctree

import doc_pages  # noqa: F401  # knows where the site's own modules are

PAGE = """
Title
=====

A *word*, a **strong one**, ``code`` and a `link <other.html#there>`_.

- one
- two

1. first

   more of it

term
    What it means.

.. code:: python

    x = 1

>>> 1 + 1
2

.. note:: Mind this.

===== =====
a     b
===== =====
1     2|3
===== =====

.. image:: images/dial.png
   :alt: a dial

.. raw:: html

    <div><style>p {}</style><table><tr><th>n</th></tr><tr><td>7</td></tr></table></div>

Part
----

:field: value
"""

TWIN = """# Title

A *word*, a **strong one**, `code` and a [link](other.md#there).

- one
- two

1. first

   more of it

- term: What it means.

```python
x = 1
```

```pycon
>>> 1 + 1
2
```

> **Note.** Mind this.

| a | b |
| --- | --- |
| 1 | 2\\|3 |

![a dial](_images/dial.png)

| n |
| --- |
| 7 |

## Part

- **field**: value
"""


def test_a_page_as_markdown() -> None:
    from site_markdown import Writer
    from site_twins import _link

    settings = {"doctitle_xform": False, "docinfo_xform": False, "syntax_highlight": "none", "report_level": 5}
    tree = publish_doctree(PAGE, settings_overrides=settings)
    for block in tree.findall(lambda node: node.tagname == "literal_block"):
        block["language"] = "python"
    made = Writer(_link, lambda uri: f"_images/{uri.rpartition('/')[2]}").page(tree)
    assert made == TWIN


def test_links_to_other_places_stay() -> None:
    from site_twins import _link

    assert _link("https://example.com/a.html") == "https://example.com/a.html"
    assert _link("#there") == "#there"


def test_a_link_to_a_script_leads_to_its_page() -> None:
    from site_generated import _SCRIPT, script_page

    text = "[a](../gallery/plot_one.py#x) [b](tutorial/index.md) [c](../gallery/) [d](other/plot.py)"
    assert _SCRIPT.sub(script_page, text) == (
        "[a](../executed/gallery/plot_one.rst#x) [b](executed/tutorial/index.rst) [c](../executed/gallery/index.rst) "
        "[d](other/plot.py)"
    )


def test_the_first_sentence_of_a_page() -> None:
    from site_twins import first_sentence

    tree = publish_doctree("T\n=\n\n.. note:: Not this. \n\nThe task, e.g. one. More.\n")
    assert first_sentence(tree).startswith("The task")


def test_what_follows_parameters_is_no_parameter() -> None:
    import site_api

    assert doctest.testmod(site_api) == (0, 4)
    lines = ["Parameters", "----------", "a", "    First.", "", "More about it,", "in two lines."]
    assert site_api.add_headings(lines)[5:] == ["", "", ".. rubric:: Notes", "", "More about it,", "in two lines."]
