-- Lowers the learning rate when the held-out loss has stopped falling.
--
--   footplate run kjv --script scripts/jobs/lr_step_down.lua -- [PATIENCE [FACTOR [MIN_GAIN]]]
--
-- After PATIENCE (3) evaluations without a gain of MIN_GAIN (0.001) optim.lr_scale is multiplied by
-- FACTOR (0.5). What it knows is in store, so a resumed run goes on where it was.

local patience = tonumber(arg[1] or 3)
local factor = tonumber(arg[2] or 0.5)
local min_gain = tonumber(arg[3] or 0.001)

on("eval", function(e)
  if e.failed or e.partial or e.on then return end  -- e.on: other samples than those of eval.batches
  local best = store.lr_best or math.huge
  if e.loss < best - min_gain then
    store.lr_best = e.loss
    store.lr_waited = 0
    return
  end
  local waited = (store.lr_waited or 0) + 1
  if waited >= patience then
    optim.lr_scale = optim.lr_scale * factor
    local text = "step %d: held-out loss %.4f, best %.4f: lr_scale %g"
    print(text:format(e.step, e.loss, best, optim.lr_scale))
    waited = 0
  end
  store.lr_waited = waited
end)
