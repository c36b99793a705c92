"""Which remedy belongs to which rule: the ways to rewrite the source, best first, and the advice where none of them fits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from trainsleuth.remedies import (
    activations,
    bad_samples,
    batch_counts,
    batch_first,
    eval_in_training,
    graph_cuts,
    half_precision,
    heads,
    in_place,
    initial_weights,
    input_ignored,
    keep_32,
    learning_rate,
    loaders,
    log_calls,
    loss_arguments,
    metric_code,
    model_copies,
    normalising,
    not_finite,
    own_backward,
    pairing,
    params_frozen,
    params_not_in_optimizer,
    pools,
    processes,
    queues,
    ranks,
    registration,
    schedule,
    softmax,
    state_names,
    static_function,
    stepping,
    targets,
    truncation,
    unstepped,
    used_up,
    validation_mode,
    ways,
)
from trainsleuth.remedies.desk import Way, at_the_first, in_the_files, in_what_they_import
from trainsleuth.remedies.frameworks import trainer_setting
from trainsleuth.remedies.loss_arguments import when


@dataclass(frozen=True)
class Remedy:
    """The ways that may cure what a rule finds; the advice is for the case that none of them is open."""

    advice: str
    ways: tuple[Way, ...] = ()


SETS_EVAL = r"\.eval\(\)|\.train\(False\)"
FINDS_UNUSED = trainer_setting({"ddp_find_unused_parameters": "True"}, {"strategy": '"ddp_find_unused_parameters_true"'})
CLIPPED_BY_TRAINER = trainer_setting({"max_grad_norm": "1.0"}, {"gradient_clip_val": "1.0"})
BUILT = "built|optimizer|killed"
OUT_OF_PLACE = (
    at_the_first(in_place.weights_after_the_step, note="chang|modif|mutat|writ|in place"),
    at_the_first(in_place.out_of_place, in_place.built_in_place, note="chang|modif|mutat|writ|in place"),
    at_the_first(in_place.written_on_a_copy, note="chang|modif|mutat|writ|in place"),
    at_the_first(in_place.out_of_place, in_place.built_in_place, in_place.written_on_a_copy),
    at_the_first(in_place.all_of_it_out_of_place),
)
SPAWN = (in_the_files(processes.spawn), in_the_files(processes.one_thread, processes.one_thread_everywhere))

REMEDIES: dict[str, Remedy] = {
    # -- it runs and does not learn ------------------------------------------------------------------------------------
    "stall/params-frozen": Remedy(
        "Freeze by module instead of by a pattern in names, and print what is left trainable.",
        (
            at_the_first(params_frozen.call_what_was_set, note="sets an attribute of the"),
            partial(ways.freed_where_it_is_frozen, plain=False), partial(ways.freed_where_it_is_frozen, plain=True),
        ),
    ),
    "stall/params-not-in-optimizer": Remedy(
        "Build the optimizer from the final model: after heads are replaced, wrappers applied, weights loaded.",
        (
            at_the_first(used_up.list_of_what_is_read_twice),
            at_the_first(params_not_in_optimizer.written_into_the_parameter, note="in the place of one of the same shape"),
            at_the_first(params_not_in_optimizer.join_the_trainers_optimizer),
            at_the_first(params_not_in_optimizer.frozen_ones_too), ways.built_behind_the_model, model_copies.train_the_original,
            at_the_first(params_not_in_optimizer.copied_not_assigned, note="assign="), ways.optimizer_asked_for_too_early,
            ways.built_again,
            at_the_first(params_not_in_optimizer.with_the_rest, note="other parameters"),
        ),
    ),
    "stall/accumulated-gradients-discarded": Remedy(
        "Clear the gradients right after the step that used them, and nowhere else.", (ways.cleared_after_use,),
    ),
    "stall/gradients-never-cleared": Remedy(
        "Call optimizer.zero_grad() once per step, right after the step.",
        (at_the_first(stepping.call_the_clearing), at_the_first(stepping.clear_after_the_step)),
    ),
    "stall/optimizer-never-steps": Remedy(
        "Call optimizer.step() after backward, and print the condition it stands under.",
        (
            at_the_first(stepping.call_the_step), at_the_first(stepping.condition_can_be_true),
            at_the_first(stepping.when_gradients_are_complete), at_the_first(stepping.also_at_the_end_of_the_loader),
            at_the_first(stepping.step_after_backward),
        ),
    ),
    "stall/steps-withheld": Remedy(
        "Inside `with accelerator.accumulate(model):` call step, scheduler.step and zero_grad for every micro-batch, without a condition.",
        (at_the_first(stepping.left_to_accelerate, note="asked for"),),
    ),
    "stall/batch-taken-for-steps": Remedy(
        "batch_first=True where the module is made, or x.transpose(0, 1) before and after it.", (in_the_files(batch_first.batch_first),),
    ),
    "stall/no-gradient": Remedy(
        "Keep the path from these layers to the loss inside torch: no detach, item, numpy, torch.tensor(…) or no_grad on it. For argmax and "
        "rounding use a straight-through estimate: y = soft + (hard - soft).detach().",
        (at_the_first(graph_cuts.detached_for_the_first_only), at_the_first(graph_cuts.listed_first),
         at_the_first(graph_cuts.buffer_of_tensors), at_the_first(graph_cuts.straight_through, note="the slope of"),
         at_the_first(graph_cuts.uncut),
         at_the_first(graph_cuts.gradients_on),
         in_the_files(learning_rate.factor_divided_truly)),
    ),
    "stall/sample-without-gradient": Remedy(
        "Draw by rsample() instead of sample().", (at_the_first(graph_cuts.reparameterised, note="cuts the graph here"),),
    ),
    "stall/learning-rate-zero": Remedy(
        "Print the learning rate where the optimizer is built, and follow it back to where it becomes 0.",
        (at_the_first(learning_rate.divide_truly),),
    ),
    "stall/double-softmax": Remedy(
        "Return logits from the model; apply softmax or sigmoid only where probabilities are shown.",
        (at_the_first(softmax.drop_activation), when(r"sum to 1", at_the_first(loss_arguments.log_of_probabilities))),
    ),
    "stall/learning-rate-too-small": Remedy(
        "Print the learning rate where the optimizer is built, and follow what it was divided by on the way.",
        (at_the_first(learning_rate.larger(100)), at_the_first(learning_rate.larger(1000))),
    ),
    "stall/probabilities-not-logs": Remedy(
        "Use log_softmax (nn.LogSoftmax) before nll_loss, or leave the softmax out and use cross_entropy.",
        (at_the_first(softmax.logarithm), at_the_first(loss_arguments.log_of_probabilities)),
    ),
    "stall/wrong-softmax-axis": Remedy(
        "Let the softmax run over the classes: dim=-1, or dim=1 for images.",
        (ways.softmax_of_one, ways.softmax_over_the_named_axis, at_the_first(softmax.class_axis), in_the_files(softmax.only_softmax)),
    ),
    "stall/unregistered-modules": Remedy(
        "Keep layers in nn.ModuleList or nn.ModuleDict and trainable tensors in nn.Parameter.",
        (registration.register_what_an_object_holds, registration.register_beside, registration.register),
    ),
    "stall/shape-broadcast": Remedy(
        "Give predictions and targets the same shape before the loss: prediction.squeeze(-1) or target.unsqueeze(-1).",
        (loss_arguments.same_shape,),
    ),
    "stall/vanishing-gradient": Remedy(
        "ReLU or GELU between the layers, residual connections, a norm layer, or another initialisation.",
        (at_the_first(activations.not_saturating), in_what_they_import(initial_weights.by_the_size_of_the_layer)),
    ),
    "stall/dead-units": Remedy(
        "Lower the learning rate or warm it up, check the biases, or use LeakyReLU, GELU or a norm layer before the activation.",
        (
            at_the_first(learning_rate.smaller(10), note="killed"), at_the_first(learning_rate.smaller(1000), note="killed"),
            in_what_they_import(activations.no_silencing_bias), at_the_first(activations.leaky, note="built"),
        ),
    ),
    "stall/scaler-skips-steps": Remedy(
        "Find the operation whose result exceeds 65,504 and compute it in 32 bit: x.float(), or torch.autocast(…, enabled=False) around it.",
        (in_the_files(half_precision.usual_scale), in_the_files(half_precision.bf16)),
    ),
    "stall/inputs-and-targets-misaligned": Remedy(
        "Follow one sample from its file to the loss; shuffle pairs, never one side alone.",
        (
            ways.axes_exchanged, in_what_they_import(pairing.same_order_for_both), in_what_they_import(pairing.the_rest_in_the_same_order),
            in_what_they_import(pairing.sort_the_pairs), in_what_they_import(pairing.one_permutation_for_both),
            in_the_files(pairing.one_order_for_two_loaders),
            at_the_first(loss_arguments.argmax_over_classes),
            in_what_they_import(targets.shifted_once), in_what_they_import(targets.other_way_round),
        ),
    ),
    "stall/mask-inverted": Remedy(
        "Give the mask the other way round: src_key_padding_mask=~mask, or mask == 0.", (at_the_first(input_ignored.mask_the_other_way),),
    ),
    "stall/input-ignored": Remedy(
        "Print what the named module receives for two different samples: a mask of zeros, the wrong variable, a norm over one element.",
        (input_ignored.no_norm_of_one_number,),
    ),
    "stall/metric-does-not-follow-loss": Remedy(
        "For CTC keep the blank's index out of the alphabet and give the model at least as many frames as symbols; for a metric "
        "compute it from the logits of this step.",
        (
            ways.predictions_over_the_classes, in_what_they_import(metric_code.without_an_axis_of_one),
            in_what_they_import(metric_code.computed_anew),
        ),
    ),
    "stall/uniform-predictions": Remedy(
        "Print the size of the logits before the loss; a lost temperature or logit scale makes them too small to tell classes apart."
    ),
    # -- mode ----------------------------------------------------------------------------------------------------------
    "mode/eval-during-training": Remedy(
        "Call model.train() at the start of each epoch, after validation has put the model into eval mode.",
        (ways.wake, at_the_first(eval_in_training.drop_eval, code=SETS_EVAL)),
    ),
    "mode/train-during-validation": Remedy(
        "Call model.eval() before validation and model.train() after it.",
        (
            at_the_first(validation_mode.tell_dropout_the_mode, note="drops in eval mode"),
            in_what_they_import(validation_mode.pass_the_mode_on), at_the_first(stepping.call_eval),
            at_the_first(validation_mode.sleep_before_validation),
        ),
    ),
    "mode/statistics-as-built": Remedy(
        "Copy the buffers as well: for own, other in zip(average.buffers(), model.buffers()): own.copy_(other).", (model_copies.buffers_too,),
    ),
    # -- data ----------------------------------------------------------------------------------------------------------
    "data/labels-out-of-range": Remedy(
        "Count the classes again: the head needs one output more than the highest label; masks of 0 to 255 need a division, -1 and 1 become 0 and 1.",
        (
            when(r"counted from 1", at_the_first(loss_arguments.shift_labels)),
            when(r": 0 to 255\b", at_the_first(loss_arguments.divide_masks)),
            when(r"are -1 or 1", at_the_first(loss_arguments.signs_to_probabilities)),
            when(r"has an output for it", at_the_first(loss_arguments.ignore_nothing)), heads.an_output_for_each_label,
        ),
    ),
    "data/labels-off-by-one": Remedy(
        "Look at the sources of the labels one by one: which of them counts from 1?",
        (when(r"none is 0", at_the_first(loss_arguments.shift_labels)),),
    ),
    "data/labels-one-hot": Remedy(
        "Take argmax(dim=1) of one-hot labels; for several labels per sample use binary_cross_entropy_with_logits.",
        (
            ways.axes_exchanged, when(r"one label per class", at_the_first(loss_arguments.argmax_over_classes)),
            when(r"targets \(\d+, \d+, \d+\)", at_the_first(loss_arguments.classes_on_axis_one)),
        ),
    ),
    "data/end-never-learnt": Remedy(
        "Leave the padding out by attention_mask == 0, not by its token; or give the padding a token of its own.",
        (in_the_files(loss_arguments.padding_by_the_mask),),
    ),
    "data/labels-constant": Remedy(
        "Print the labels of a batch and look at the line that makes them: an index that is not used, a broadcast, a threshold on another scale.",
        (
            in_the_files(loss_arguments.indices_not_values), in_the_files(loss_arguments.ignore_the_padding),
            truncation.multiply_before_cutting,
        ),
    ),
    "data/not-normalised": Remedy(
        "Subtract the mean and divide by the standard deviation of the training data, or divide pixels by 255.",
        (in_the_files(normalising.norm_first),),
    ),
    "data/not-shuffled": Remedy(
        "Shuffle before batches are cut: shuffle=True, or a permutation that is applied to inputs and labels alike.",
        (
            at_the_first(loaders.shuffled_in_memory, note="is iterated"), at_the_first(loaders.shuffled, note="^(?!.*is iterated)"),
            at_the_first(loaders.without_its_sampler), at_the_first(loaders.batches_in_any_order, note="gives the order"),
        ),
    ),
    "data/samples-rewritten": Remedy(
        "Give the transform a copy of the sample: .clone(), .copy(), or operations that do not end in an underscore.", (ways.read_as_a_copy,),
    ),
    "data/workers-share-random-state": Remedy(
        "Seed a generator inside the worker, from torch.utils.data.get_worker_info().seed, or give each worker its own part of the data.",
        (at_the_first(loaders.generator_of_each_worker, note="samples here"), at_the_first(loaders.no_workers, note="this loader")),
    ),
    # -- schedule ------------------------------------------------------------------------------------------------------
    "schedule/decays-to-zero-early": Remedy(
        "Count the schedule's length in the unit in which it is stepped: epochs times batches when it is stepped per batch.",
        (
            in_the_files(schedule.prepared_by_accelerate), at_the_first(schedule.length_in_batches), at_the_first(schedule.for_all_epochs),
            at_the_first(schedule.step_once_an_epoch), in_the_files(schedule.in_lightning("epoch")),
        ),
    ),
    "schedule/warmup-never-ends": Remedy(
        "Count warm-up in the unit in which the scheduler is stepped: updates, not epochs, samples or micro-batches.",
        (
            at_the_first(schedule.count_batches_not_samples), at_the_first(batch_counts.count_batches_of_this_size),
            at_the_first(schedule.step_once_a_batch), in_the_files(schedule.in_lightning("step")), schedule.warmup_that_fits,
        ),
    ),
    "schedule/never-stepped": Remedy(
        "Call scheduler.step() after optimizer.step(); under Lightning return the scheduler from configure_optimizers, or step it by hand.",
        (unstepped.hand_it_over, unstepped.step_it),
    ),
    "schedule/ends-before-the-run": Remedy(
        "Round up when batches are counted: len(loader), or math.ceil(samples / batch_size); the last batch that is not full counts.",
        (at_the_first(batch_counts.rounded_up, note="made for"),),
    ),
    "schedule/rate-times-itself": Remedy(
        "Return a factor between 0 and 1, or build the optimizer with lr=1.0 and return the rate.", (at_the_first(schedule.factor_not_rate),),
    ),
    "schedule/step-order": Remedy(
        "Call optimizer.step() first, then scheduler.step().", (at_the_first(schedule.after_the_optimizer, note="must come after|^$"),),
    ),
    "checkpoint/restores-nothing": Remedy(
        "Keep copy.deepcopy(model.state_dict()), or a clone of each tensor.",
        (at_the_first(model_copies.copy_of_the_state, note="keeps references"),),
    ),
    "schedule/reset-on-resume": Remedy(
        "Save scheduler.state_dict() with the optimizer's, and load both.", (schedule.restore_the_scheduler,),
    ),
    # -- hang ----------------------------------------------------------------------------------------------------------
    "hang/openmp-after-fork": Remedy('Start children with multiprocessing.get_context("spawn"), or fork before any tensor is computed.', SPAWN),
    "hang/fork-with-live-threads": Remedy(
        'Start children with multiprocessing.get_context("spawn"), or make the pool, the lock or the model anew inside the child.',
        (in_the_files(processes.spawn), processes.free_at_a_fork),
    ),
    "hang/openmp-thread-limit": Remedy(
        "Remove the limit on OpenMP's threads, or tell torch to use no more threads than it allows.",
        (in_the_files(processes.no_limit), processes.threads_within_the_limit, processes.without_the_limit),
    ),
    "hang/two-openmp-runtimes": Remedy("Install torch and numpy from one source.", (processes.one_threading_layer,)),
    "hang/dataloader-worker": Remedy(
        "Run with num_workers=0 to see where the sample stands; give that line a time limit, or skip the sample.",
        (
            when(r"the parent had these threads", at_the_first(loaders.workers_afresh)),
            when(r"the parent had these threads", at_the_first(loaders.no_workers)),
            when(r"runs in circles", at_the_first(loaders.bounded_tries, note="goes round")),
        ),
    ),
    "hang/python-lock": Remedy(
        "Take locks in one order everywhere, and hold them as short as possible.", (processes.reentrant, processes.one_lock_for_both),
    ),
    "hang/queue-nobody-feeds": Remedy(
        "Put an end mark into the queue in a `finally` of the producer, or call get(timeout=…) and look whether it is alive. Tasks of a pool "
        "must not wait for tasks of the same pool.",
        (in_the_files(pools.pool_of_their_own), queues.emptied_while_it_is_joined, queues.given_back_on_each_way, at_the_first(queues.end_mark)),
    ),
    "hang/pipe-nobody-reads": Remedy(
        "Read while you wait: out, err = process.communicate(), or subprocess.run(…, capture_output=True). What nobody reads should be no pipe.",
        (at_the_first(processes.read_while_waiting, note="waits here for the process"), processes.messages_to_the_terminal),
    ),
    "hang/input-blocked": Remedy(
        "Give the call a time limit, and look why the other side is silent; a job without a terminal must not ask questions.",
        (at_the_first(processes.time_limit),),
    ),
    "hang/gil-held-by-native-code": Remedy(
        "Let the extension release the interpreter's lock around the long part, or bound the call; a regular expression that backtracks "
        "without end needs another form.",
        (in_the_files(processes.release_the_lock),),
    ),
    # -- ranks ---------------------------------------------------------------------------------------------------------
    "ranks/unused-parameters": Remedy(
        "Use the parameters in every forward, freeze them, or give DDP find_unused_parameters=True.",
        (at_the_first(ranks.find_unused), FINDS_UNUSED),
    ),
    "ranks/same-data-on-every-rank": Remedy(
        "Give the loader a DistributedSampler and call its set_epoch, or divide the data by rank.",
        (
            in_the_files(loaders.prepared_by_accelerate), at_the_first(loaders.divided_among_ranks),
            in_what_they_import(ranks.its_rank_not_its_node), in_what_they_import(ranks.as_the_group_says),
        ),
    ),
    "ranks/uneven-batches": Remedy(
        "Use a DistributedSampler, which gives every rank the same number, or run the loop in `with model.join():`.",
        (at_the_first(ranks.join), ranks.leave_together),
    ),
    "ranks/collective-missing": Remedy(
        "Let every rank make the same calls: no collective inside `if rank == 0`, and a decision to stop is taken together (all_reduce it).",
        (at_the_first(ranks.out_of_the_branch), at_the_first(ranks.decided_together), ranks.leave_together),
    ),
    "ranks/collective-mismatch": Remedy(
        "Let every rank make the same calls in the same order and shape, also where it has nothing to contribute.",
        (at_the_first(ranks.out_of_the_branch), at_the_first(ranks.decided_together), ranks.leave_together),
    ),
    "ranks/diverged-weights": Remedy(
        "Load or make the weights before wrapping the model in DDP, on every rank, or broadcast them once.",
        (
            at_the_first(ranks.load_on_all, note="loads"), at_the_first(ranks.wrapped_again, note="made here"),
            at_the_first(ranks.wrap_the_rest, note="outside of the wrapper"),
            ways.through_the_wrapper, ways.averaged_by_hand,
            ways.broadcast_once,
        ),
    ),
    "ranks/straggler": Remedy(
        "Give each rank as much work: shuffle before dividing, or give the loader workers.", (at_the_first(loaders.interleaved),),
    ),
    # -- numbers that break --------------------------------------------------------------------------------------------
    "nan/log-of-zero": Remedy(
        "Keep zero out of the logarithm: log_softmax, binary_cross_entropy_with_logits, or clamp its input.",
        (at_the_first(not_finite.log_of_softmax), at_the_first(not_finite.log_not_of_zero)),
    ),
    "nan/sqrt-at-zero": Remedy(
        "Keep zero out of the root: its slope is infinite there. Clamp its input at a small number.",
        (at_the_first(not_finite.sqrt_not_of_zero), at_the_first(not_finite.inverse_not_at_one)),
    ),
    "nan/zero-division": Remedy(
        "Guard the divisor: clamp(min=…) for counts and norms, a small number added otherwise.",
        (ways.divide_by_a_count, at_the_first(not_finite.divide_by_something)),
    ),
    "nan/where-trap": Remedy(
        "Guard the input inside as well: x_safe = torch.where(ok, x, 1), then torch.where(ok, f(x_safe), other).",
        (at_the_first(not_finite.guard_inside_where),),
    ),
    "nan/exp-overflow": Remedy(
        "Use logsumexp, softplus or log-space, scale the inputs, or bound the argument of exp.",
        (
            at_the_first(not_finite.stable_exponential), at_the_first(not_finite.shifted_exponential),
            at_the_first(not_finite.bounded_exponential),
        ),
    ),
    "nan/half-overflow": Remedy(
        "Compute this operation in 32 bit, scale its inputs down before it, or use bfloat16.",
        (in_the_files(half_precision.bf16), at_the_first(not_finite.in_full_precision)),
    ),
    "nan/softmax-of-empty-row": Remedy(
        "A row that is masked as a whole has no softmax: mask with the lowest finite number, or leave such rows out.",
        (at_the_first(not_finite.finite_mask), at_the_first(not_finite.rows_that_keep_an_entry)),
    ),
    "nan/variance-of-one-sample": Remedy(
        "The deviation of one sample is 0 / 0: drop_last=True, or correction=0.",
        (in_the_files(not_finite.drop_the_last_batch), at_the_first(not_finite.deviation_of_one)),
    ),
    "nan/ctc-infinite": Remedy(
        "zero_infinity=True, and drop the samples whose targets are longer than their inputs.", (in_the_files(not_finite.zero_infinity),),
    ),
    "nan/diverged": Remedy(
        "Lower the learning rate, warm it up, or clip the gradients.",
        (
            in_the_files(not_finite.clip_behind_backward), in_the_files(schedule.no_growth),
            at_the_first(learning_rate.smaller(10)), CLIPPED_BY_TRAINER,
            in_the_files(not_finite.clip_before_the_step), at_the_first(learning_rate.smaller(100)),
        ),
    ),
    "nan/bad-sample": Remedy(
        "Repair or drop the sample that is named; test inputs with torch.isfinite where they are read.",
        (
            at_the_first(not_finite.divide_by_something), at_the_first(not_finite.log_not_of_zero),
            bad_samples.missing_numbers_become_zero,
        ),
    ),
    "nan/first-operation": Remedy(
        "Look at the operands of that operation: keep them in the range that it bears, before it, not after it.",
        (at_the_first(not_finite.inverse_not_at_one),),
    ),
    "crash/native-code": Remedy(
        "Look at what the named line hands to native code: memory that is gone, an index without a check, a library of another version.",
        (processes.no_newest_instructions,),
    ),
    "crash/known": Remedy("The finding says what usually causes this message; the first line is where to look."),
    "logging/points-dropped": Remedy(
        "Log with one counter that only rises: trainsleuth.stepping.StepLogger, or define_metric for validation.",
        (at_the_first(log_calls.over_all_epochs, note="has passed"), at_the_first(log_calls.counted_by_the_logger, note="has passed")),
    ),
    "logging/step-not-increasing": Remedy(
        "Log with one counter that only rises: trainsleuth.stepping.StepLogger, or an axis of its own.",
        (at_the_first(log_calls.over_all_epochs, note="starts again"), ways.own_counter),
    ),
    "logging/two-writers": Remedy(
        "Give each writer a folder of its own, and let rank zero alone write.",
        (
            at_the_first(log_calls.folder_of_its_own, note="another writer uses"),
            at_the_first(log_calls.folder_for_each_process, note="in every process"),
        ),
    ),
    "nan/bad-weights": Remedy("The file that was loaded holds NaN or infinity: load an earlier one, or save in 32 bit."),
    "autograd/modified-in-place": Remedy(
        "Make a new tensor instead of changing the old one: x = x + 1, relu instead of relu_, torch.stack instead of h[:, t] = ….",
        OUT_OF_PLACE,
    ),
    "autograd/silently-modified": Remedy(
        "Change weights after the step, under torch.no_grad(), and never what a forward has used before its backward.",
        (
            at_the_first(in_place.copied_when_taken_out, note="taken out of the graph here"),
            at_the_first(in_place.copied_where_it_got_its_name), at_the_first(in_place.second_loss_after_the_step, note="changes the tensor"),
            at_the_first(in_place.changed_after_the_step), at_the_first(in_place.on_a_clone), *OUT_OF_PLACE,
            at_the_first(in_place.given_as_a_copy, note="needs it unchanged"),
        ),
    ),
    "autograd/leaf-modified": Remedy(
        "Change parameters by hand only under torch.no_grad().", (at_the_first(in_place.without_gradients),),
    ),
    "autograd/graph-freed": Remedy(
        "Detach the state that goes from one step to the next, or add up the losses and call backward once.",
        (
            at_the_first(in_place.not_from_a_cache, note="made here"),
            at_the_first(in_place.state_without_gradients, note="uses a result with its history"),
            at_the_first(in_place.detach_the_old_value, note="uses a result with its history"),
            at_the_first(in_place.detach_the_state), at_the_first(in_place.detach_the_state_of_two),
            at_the_first(in_place.computed_in_the_loop), at_the_first(in_place.keep_the_graph),
        ),
    ),
    "autograd/step-between-backwards": Remedy(
        "Compute the second loss after the first step, from the weights that it leaves.", (at_the_first(in_place.second_loss_after_the_step),),
    ),
    "autograd/custom-function-not-static": Remedy(
        "Make forward and backward static, take ctx, and call the Function by apply.", (in_the_files(static_function.static_function),),
    ),
    "autograd/custom-backward-wrong": Remedy(
        "Compare backward with torch.autograd.gradcheck in double precision; the formula is wrong.",
        (at_the_first(own_backward.left_to_autograd),),
    ),
    "checkpoint/weights-not-loaded": Remedy(
        "Rename the keys while loading, or load into the module that the file was saved from; print what load_state_dict returns.",
        (state_names.under_the_names_of_the_module,),
    ),
    "checkpoint/random-inside": Remedy(
        "Draw random numbers from torch inside a checkpointed block, or draw them outside and pass them in.",
        (
            at_the_first(in_place.torch_random), in_what_they_import(in_place.keep_the_random_state),
            at_the_first(in_place.not_checkpointed, note="checkpointed here"),
        ),
    ),
    "precision/accuracy-loss": Remedy(
        "`trainsleuth prove CASE --precision` finds the modules that do not bear 16 bit: keep those in 32 bit, not everything.", (keep_32.rewrite,),
    ),
    "precision/clip-before-unscale": Remedy(
        "Call scaler.unscale_(optimizer) before clipping.",
        (at_the_first(half_precision.unscale_before_clipping), at_the_first(half_precision.unscale_after_backward)),
    ),
    "precision/no-grad-scaler": Remedy(
        "Use torch.amp.GradScaler with float16, or bfloat16, which needs none.",
        (in_the_files(half_precision.add_a_scaler, half_precision.scaler_for_the_device), in_the_files(half_precision.bf16)),
    ),
    "precision/gradient-underflow": Remedy(
        "Use torch.amp.GradScaler with float16, or bfloat16.",
        (in_the_files(half_precision.add_a_scaler, half_precision.scaler_for_the_device), in_the_files(half_precision.bf16)),
    ),
    "precision/scale-collapsed": Remedy(
        "Find the operation that overflows and compute it in 32 bit, or use bfloat16.", (in_the_files(half_precision.bf16),),
    ),
    "precision/step-without-unscale": Remedy(
        "Let the scaler make the step: scaler.step(optimizer), then scaler.update().", (in_the_files(half_precision.step_through_the_scaler),),
    ),
    "precision/loss-not-scaled": Remedy(
        "Scale this loss, too: scaler.scale(loss).backward().", (at_the_first(half_precision.scale_the_loss),),
    ),
    "precision/optimizer-epsilon": Remedy(
        "Give the optimizer an eps that half precision can hold, 1e-4, or keep the weights in 32 bit.",
        (at_the_first(half_precision.larger_epsilon), in_the_files(half_precision.norms_in_full_precision)),
    ),
    "precision/norm-weights-frozen": Remedy(
        "Keep the weights in 32 bit and compute in 16 bit under torch.autocast.",
        (
            in_the_files(half_precision.norms_in_full_precision),
            at_the_first(half_precision.made_in_full_precision, note="made 16 bit"),
            when(r"bfloat16", trainer_setting(lightning={"precision": '"bf16-mixed"'})),
            when(r"\bfloat16", trainer_setting(lightning={"precision": '"16-mixed"'})),
        ),
    ),
    "precision/loss-computed-in-half": Remedy(
        "Compute the loss in 32 bit: logits.float().", (at_the_first(loss_arguments.in_full_precision),),
    ),
    "precision/autocast-around-backward": Remedy(
        "Close the autocast block before backward.", (at_the_first(half_precision.backward_outside_autocast),),
    ),
    "logging/nan-hidden": Remedy(
        "Show NaN as NaN: logging_nan_inf_filter=False, no nan_to_num in the logger.", (trainer_setting({"logging_nan_inf_filter": "False"}),),
    ),
}  # fmt: skip
