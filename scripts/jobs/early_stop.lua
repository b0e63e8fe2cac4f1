-- Ends the run when the held-out loss hasn't fallen for a while.
--
--   footplate run kjv --script scripts/jobs/early_stop.lua -- [PATIENCE [MIN_GAIN]]
--
-- After PATIENCE (5) evaluations without a gain of MIN_GAIN (0.001) the run saves and ends, code 0.

local patience = tonumber(arg[1] or 5)
local min_gain = tonumber(arg[2] or 0.001)

on("eval", function(e)
  if e.failed or e.partial or e.on then return end  -- e.on: other samples than those of eval.batches
  local best = store.stop_best or math.huge
  if e.loss < best - min_gain then
    store.stop_best = e.loss
    store.stop_waited = 0
    return
  end
  store.stop_waited = (store.stop_waited or 0) + 1
  if store.stop_waited < patience then return end
  run.stop(("no gain for %d evaluations: best held-out loss %.4f"):format(patience, best))
end)
