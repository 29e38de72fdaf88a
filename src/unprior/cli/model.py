"""Options about models that commands without a configuration share."""

from __future__ import annotations

from typing import Annotated

from unprior.cli.options import option

TrustRemoteCode = Annotated[bool, option("trust_remote_code")]
AllowCensored = Annotated[bool, option("allow_censored")]
