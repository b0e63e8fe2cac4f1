-- GPT-2's 124 million parameters on one GPU or several, bf16. Bytes are the tokens; the output is as wide
-- as GPT-2's, so that a step costs what one of GPT-2 costs.
data.corpus = "kjv"
train.steps = 2000
train.batch_size = 64 -- sequences, over all ranks
train.precision = "bf16"
model.set{ layers = 12, heads = 12, width = 768, context = 1024, vocabulary = 50257 }
sched.set{ base_lr = 6e-4, min_lr = 6e-5, warmup_steps = 100 }
optim.set{ weight_decay = 0.1, betas = { 0.9, 0.95 } }
comm.bucket_mb = 25
eval.set{ every = 200, batches = 4, batch_size = 16 }
