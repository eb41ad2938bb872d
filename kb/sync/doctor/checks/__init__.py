"""One check per file; see `kb.sync.doctor.contract`."""
