"""Losses: one number, unless `reduction="none"` keeps each."""

from __future__ import annotations

from typing import Any

from .pointwise import broadcast_shapes, tensors
from .reductions import reduced
from .registry import formula

Shape = tuple
_KINDS = {0: "none", 1: "mean", 2: "sum"}  # as PyTorch's own operators number them


def _kept(reduction: Any, shape: Shape) -> Shape:
    return shape if _KINDS.get(reduction, reduction) == "none" else ()


@formula("""mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits kl_div
soft_margin_loss poisson_nll_loss hinge_embedding_loss""")
def pointwise_loss(input: Shape, target: Shape, weight: Any = None, *args: Any, reduction: Any = "mean", **kwargs: Any) -> Shape:
    return _kept(reduction, broadcast_shapes(*tensors(input, target, weight)))


formula("gaussian_nll_loss")(
    lambda input, target, var, full=False, eps=1e-06, reduction="mean": _kept(reduction, broadcast_shapes(input, target))
)
formula("cross_entropy nll_loss")(lambda input, target, *args, reduction="mean", **kwargs: _kept(reduction, (*input[:-1][:1], *input[2:])))
formula("multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss")(
    lambda input, target, *args, reduction="mean", **kwargs: _kept(reduction, input[:-1])
)
formula("margin_ranking_loss")(
    lambda input1, input2, target, *args, reduction="mean", **kwargs: _kept(reduction, broadcast_shapes(input1, input2, target))
)
formula("cosine_embedding_loss")(
    lambda input1, input2, target, *args, reduction="mean", **kwargs: _kept(
        reduction, broadcast_shapes(reduced(broadcast_shapes(input1, input2), -1), target)
    )
)
formula("triplet_margin_loss triplet_margin_with_distance_loss")(
    lambda anchor, positive, negative, *args, reduction="mean", **kwargs: _kept(
        reduction, reduced(broadcast_shapes(anchor, positive, negative), -1)
    )
)
formula("ctc_loss")(
    lambda log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", *args, **kwargs: _kept(reduction, log_probs[1:-1])
)
formula("linear_cross_entropy")(
    lambda input, linear_weight, target, *, reduction="mean", **kwargs: _kept(reduction, (*input[:-1], *linear_weight[1:-1]))
)
