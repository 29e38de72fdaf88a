"""How the documentation site is built: `make docs`, warnings are errors.

The site asks for nothing from elsewhere when it is viewed: system fonts, no MathJax (formulas are Unicode), no
inventories of other projects.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS / "_ext"), str(DOCS.parent / "src")]

from unprior._version import __version__  # noqa: E402  # of this checkout, wherever another one is installed

project = "unprior"
author = "The unprior developers"
version = release = __version__
project_copyright = author

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "site_api",
    "site_generated",
    "site_twins",
]
# Executed scripts are read from here and written, as pages, to `executed`; the scripts' folders hold no pages.
SCRIPTS = [name for name in ("tutorial", "gallery") if (DOCS / name).is_dir()]
# Scores are shared by the scripts of one build, and by nothing else: a page never shows what another state computed.
os.environ["UNPRIOR_GALLERY"] = tempfile.mkdtemp(prefix="unprior-gallery-")
atexit.register(shutil.rmtree, os.environ["UNPRIOR_GALLERY"], ignore_errors=True)
exclude_patterns = ["_build", "_ext", "_templates", "tutorial", "gallery"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
default_role = "code"
smartquotes_action = "q"  # dashes stay as they are: options begin with two
toc_object_entries_show_parents = "hide"

myst_enable_extensions = ["attrs_block", "colon_fence", "deflist"]
myst_heading_anchors = 4

autodoc_class_signature = "mixed"
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_preserve_defaults = True
autodoc_type_aliases = {"ArrayLike": "ArrayLike", "Report": "Report", "FloatArray": "FloatArray"}
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

# All is executed anew: the package may have changed where a script has not, and a script may be gone.
shutil.rmtree(DOCS / "executed", ignore_errors=True)
sphinx_gallery_conf = {
    "examples_dirs": SCRIPTS,
    "gallery_dirs": [f"executed/{name}" for name in SCRIPTS],
    "filename_pattern": r"[\\/]plot_",
    "within_subsection_order": "FileNameSortKey",
    "capture_repr": ("_repr_html_", "__repr__"),
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 10_000,  # how long a script takes here says nothing about the reader's machine
    "image_srcset": ["2x"],
    "plot_gallery": "True",
}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"
copybutton_only_copy_prompt_lines = True

html_theme = "furo"
html_title = f"unprior {version}"
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_js_files = ["site.js"]
html_copy_source = False  # every page has a Markdown twin instead
html_show_sourcelink = False
html_show_sphinx = False
html_domain_indices = False
html_theme_options = {"navigation_with_keys": True}
