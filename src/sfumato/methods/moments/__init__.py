"""`moments`: images by their moments, the default for image sets."""

from sfumato.methods.moments.fit import MomentFit, plan_moments

__all__ = ["MomentFit", "plan_moments"]
