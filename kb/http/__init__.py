"""The one HTTP client of kb: deadlines, size caps, pacing, back-off, conditional GET, and no way to private addresses.

`Client.get` answers with an `Answer` or raises `NoAnswer` with a status of `kb.vocab.SOURCE_STATUS`. Only this package
imports httpx.
"""

from kb.http.answer import Answer, Limits, NoAnswer, Tally, Validators
from kb.http.client import Client
from kb.http.pacing import SYSTEM_TIME, Time

__all__ = ["SYSTEM_TIME", "Answer", "Client", "Limits", "NoAnswer", "Tally", "Time", "Validators"]
