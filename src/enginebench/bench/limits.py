"""Resources of this host that a level needs, checked before anything is sent."""

from __future__ import annotations

import resource

from enginebench.errors import UserError

_SPARE_DESCRIPTORS = 64
"""For the interpreter, the spool, pipes and the selector."""


def ensure_descriptors(highest_level: int) -> None:
    """Raises the soft limit of open files to what `highest_level` streams need.

    Raises UserError when the hard limit forbids it. Workers inherit the limit.
    """
    needed = highest_level + _SPARE_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        if hard != resource.RLIM_INFINITY and hard < needed:
            raise UserError(
                f"{highest_level} concurrent streams need {needed} open files, but this shell allows "
                f"at most {hard}; raise it (`ulimit -Hn {needed}`, or LimitNOFILE in the service) "
                "or lower the concurrency"
            )
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
