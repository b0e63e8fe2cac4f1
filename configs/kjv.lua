-- A byte-level language model on the King James text: 840 thousand parameters, minutes on two cores.
run.task = "text"
data.corpus = "kjv"

model.layers = 4
model.heads = 4
model.width = 128
model.context = 128

train.steps = 1300
train.batch_size = 16          -- global, in sequences
sched.kind = "cosine"
sched.base_lr = 3e-3
sched.warmup_steps = 100
optim.weight_decay = 0.1
optim.betas = {0.9, 0.95}

log.every = 20
eval.every = 200
eval.batches = 20              -- the last evaluation, at the end, takes everything that is held out
eval.batch_size = 16
ckpt.every = 500
