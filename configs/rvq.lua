-- A codec of speech with residual vector quantisation (docs/rvq.md): 16 kbit/s, minutes on two cores.
run.task = "rvq"
data.corpus = "speech"         -- or a folder of WAV files

train.steps = 1500
train.batch_size = 18          -- global, in windows: six of each length
sched.kind = "cosine"
sched.base_lr = 2e-3
sched.min_lr = 4e-5
sched.warmup_steps = 50
optim.weight_decay = 0
optim.betas = {0.9, 0.99}

log.every = 20
eval.every = 300
eval.batches = 10              -- the last evaluation, at the end, takes everything that is held out
eval.batch_size = 32
ckpt.every = 500
