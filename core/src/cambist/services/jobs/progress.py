"""How far a job is, in words."""

from __future__ import annotations

from .requests import Job, Kind


def progress_of(job: Job) -> str:
    """Say what a job is about and how far it is, as its row has it; nothing where there is nothing to say yet."""
    done, asked = job.progress, job.arguments
    height = done.get("height", -1)
    read = f" up to block {height}" if height >= 0 else ""
    match job.kind:
        case Kind.RECONCILE if done:
            return f"compared {', '.join(sorted(done))}"
        case Kind.RESCAN:
            return f"{asked['chain']} {asked['first']} to {asked['last']}{read and f',{read}'}"
        case Kind.TRACKER_HISTORY:
            return f"{asked['chain']}{read}"
        case Kind.STATEMENT_EXPORT if done:
            return f"{done['entries']} entries"
        case Kind.AUDIT_VERIFICATION if done:
            return f"{done['seals']} seals, {done['entries']} entries"
        case Kind.WEBHOOK_REDELIVERY if done:
            return f"{done['queued']} deliveries"
        case _:
            return ""
