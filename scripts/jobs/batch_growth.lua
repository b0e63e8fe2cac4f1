-- Doubles the batch when the held-out loss has stopped falling, as far as memory allows.
--
--   footplate run kjv --script scripts/jobs/batch_growth.lua -- [PATIENCE [MOST [MEMORY_MIB [MIN_GAIN]]]]
--
-- After PATIENCE (3) evaluations without a gain of MIN_GAIN (0.001) train.batch_size is doubled, up to
-- MOST (1024). A rank that needs more than half of MEMORY_MIB (no limit) goes on with as many samples at
-- once as before: train.micro_batch is set, and gradients accumulate. What it knows is in store.

local patience = tonumber(arg[1] or 3)
local most = tonumber(arg[2] or 1024)
local memory_mib = tonumber(arg[3] or math.huge)
local min_gain = tonumber(arg[4] or 0.001)

local function memory()  -- of the device, or of the process where there is none
  local now = metrics()
  return now["mem/peak_mib"] or now["mem/resident_mib"] or 0
end

local function grow(e)
  local size, at_once = train.batch_size, train.micro_batch
  if at_once == 0 and memory() > memory_mib / 2 then
    at_once = math.ceil(size / status().world_size)
  end
  set{ train = { batch_size = 2 * size, micro_batch = at_once } }
  local text = "step %d: held-out loss %.4f, %.0f MiB in use: batch_size %d, micro_batch %d"
  print(text:format(e.step, e.loss, memory(), 2 * size, at_once))
end

on("eval", function(e)
  if e.failed or e.partial or e.on then return end  -- e.on: other samples than those of eval.batches
  if e.loss < (store.batch_best or math.huge) - min_gain then
    store.batch_best = e.loss
    store.batch_waited = 0
    return
  end
  store.batch_waited = (store.batch_waited or 0) + 1
  if store.batch_waited < patience or 2 * train.batch_size > most then return end
  store.batch_waited = 0
  grow(e)
end)
