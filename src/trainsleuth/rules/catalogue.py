"""The explicit list of all rules."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from trainsleuth.rules.kinds import Rule

MODULES = (
    "crash.exception", "crash.native_code", "crash.known", "nan.loss_not_finite",
    "logging.nan_hidden", "precision.scale_collapsed",
    "nan.bad_weights", "nan.bad_sample", "nan.log_of_zero", "nan.sqrt_at_zero", "nan.zero_division", "nan.exp_overflow",
    "nan.half_overflow", "nan.softmax_of_empty_row", "nan.variance_of_one_sample", "nan.where_trap", "nan.ctc_infinite",
    "nan.diverged", "nan.first_operation",
    "autograd.modified_in_place", "autograd.step_between_backwards", "autograd.silently_modified", "autograd.graph_freed",
    "autograd.leaf_modified", "autograd.custom_function_not_static", "autograd.custom_backward_wrong",
    "checkpoint.random_inside", "checkpoint.restores_nothing", "checkpoint.weights_not_loaded",
    "hang.backward", "hang.standstill", "ranks.unused_parameters", "ranks.uneven_batches", "ranks.collective_mismatch",
    "ranks.collective_missing", "hang.openmp_thread_limit", "hang.openmp_after_fork",
    "hang.gil_held_by_native_code", "hang.fork_with_live_threads", "hang.dataloader_worker", "hang.python_lock", "hang.queue_nobody_feeds",
    "hang.input_blocked", "hang.pipe_nobody_reads", "hang.two_openmp_runtimes",
    "stall.flat_loss", "stall.uniform_predictions",
    "stall.optimizer_never_steps", "stall.steps_withheld", "stall.batch_taken_for_steps",
    "stall.params_not_in_optimizer", "stall.unregistered_modules", "stall.no_gradient",
    "stall.sample_without_gradient",
    "stall.learning_rate_zero", "stall.scaler_skips_steps",
    "precision.step_without_unscale", "precision.loss_not_scaled", "precision.clip_before_unscale", "precision.optimizer_epsilon",
    "precision.no_grad_scaler", "precision.gradient_underflow", "precision.norm_weights_frozen", "precision.loss_computed_in_half",
    "precision.autocast_around_backward",
    "stall.accumulated_gradients_discarded",
    "stall.gradients_never_cleared", "stall.double_softmax", "stall.probabilities_not_logs", "stall.wrong_softmax_axis", "stall.shape_broadcast",
    "stall.learning_rate_too_small", "stall.dead_units", "stall.vanishing_gradient", "stall.input_ignored", "stall.mask_inverted",
    "stall.metric_does_not_follow_loss",
    "mode.eval_during_training", "mode.train_during_validation", "mode.statistics_as_built",
    "data.labels_out_of_range", "data.labels_constant", "data.labels_one_hot", "data.labels_off_by_one", "data.end_never_learnt",
    "data.not_shuffled", "data.samples_rewritten", "data.workers_share_random_state", "data.not_normalised",
    "schedule.ends_before_the_run",
    "schedule.never_stepped",
    "schedule.warmup_never_ends", "schedule.rate_times_itself", "schedule.decays_to_zero_early", "schedule.step_order", "schedule.reset_on_resume",
    "stall.params_frozen", "stall.inputs_and_targets_misaligned",
    "ranks.diverged_weights", "ranks.same_data_on_every_rank", "ranks.straggler",
    "stall.chance_accuracy", "validation.overfitting", "data.empty_dataset", "cache.empty", "cache.stale_entries",
    "precision.accuracy_loss", "speed.slows_down",
    "logging.points_dropped", "logging.step_not_increasing", "logging.two_writers",
)  # fmt: skip


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, in the order in which causes of equal weight are read."""
    return tuple(import_module(f"trainsleuth.rules.{name}").rule for name in MODULES)


@cache
def record_rules() -> tuple[Rule, ...]:
    """The rules on what a run left behind: rules of their own, and the record forms of rules that also judge live."""
    modules = [import_module(f"trainsleuth.rules.{name}") for name in MODULES]
    found = [getattr(module, "record", None) or module.rule for module in modules]
    return tuple(rule for rule in found if rule.of_record)


def rule_named(name: str) -> Rule | None:
    return next((rule for rule in all_rules() if rule.name == name), None)
