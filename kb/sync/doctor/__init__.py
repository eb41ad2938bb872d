"""What stands in the way of sync and of the base, one check per file under `checks`; see `examine`."""

from kb.sync.doctor.contract import Finding, State
from kb.sync.doctor.run import check_names, examine

__all__ = ["Finding", "State", "check_names", "examine"]
