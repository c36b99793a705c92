"""A language model is never told where a text ends.

What it detects
    The texts of the batches end with the end-of-text token, and its label is left out of the loss (-100) in each of them: in all looks that token
    is never what the model should say.
Why it matters
    The loss looks as it should. What the model writes later never stops, and repeats itself up to the limit.
How it is confirmed
    By the batches: input_ids, attention_mask and labels, as the model is given them. A trial in which these labels count (knob `ends-learnt`) changes
    the scores that the program prints of what the model writes.
How to cure it
    The padding is the same token as the end (`pad_token = eos_token`), and the collator leaves out all of them. Leave out by the attention mask, or
    give the padding a token of its own.
When it is wrong
    A model that is only used to score texts need not learn their end.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule

LOOKS, ROWS = 3, 24


@cause_rule("data/end-never-learnt", settled_by=("ends-learnt",))
def rule(chart: ProcessChart) -> Verdict:
    looks = [fact for fact in chart.end_marks if fact["ends"]]
    ends = sum(fact["ends"] for fact in looks)
    if len(looks) < LOOKS or ends < ROWS or any(fact["learnt"] or fact["ignored"] < fact["ends"] for fact in chart.end_marks):
        return None
    main = chart.main_loss()
    collated = next((at for loader in chart.loaders.values() if loader.passes and (at := place(loader.about.get("collated_at")))), None)
    return Seen(
        title="the model is never told where a text ends: the label of the end-of-text token is left out each time",
        where=[
            Spot(collated, "makes the labels of a batch", function=True) if collated else None,
            Spot(main[0], "trained here") if main else None,
        ],
        evidence=[
            f"{ends:,} of {sum(fact['rows'] for fact in chart.end_marks):,} rows looked at end with token {looks[-1]['end']} (the model's "
            "eos_token_id), and its label is -100 in every one",
            f"in {len(chart.end_marks)} looks this token is no label anywhere",
        ],
        severity="warning",
        step=LOOKS,
        statement="the padding is the same token as the end of a text, and both are left out of the loss",
        advice=["Leave the padding out by attention_mask == 0, not by its token; or give the padding a token of its own."],
        certain=False,
    )
