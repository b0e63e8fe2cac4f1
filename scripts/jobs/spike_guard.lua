-- Saves a checkpoint and halves the learning rate when the training loss jumps.
--
--   footplate run kjv --script scripts/jobs/spike_guard.lua -- [FACTOR [LINES]]
--
-- A jump is a logged loss above FACTOR (2) times the average of the LINES (20) logged before it. sync:
-- training waits for the answer, at most 50 ms, so the lower rate counts from the next step or the one after.
-- A loss that isn't finite is left out: such a step is skipped.

local factor = tonumber(arg[1] or 2)
local lines = tonumber(arg[2] or 20)
local losses = {}

local function average()
  local sum = 0
  for _, loss in ipairs(losses) do sum = sum + loss end
  return sum / #losses
end

on("log", { sync = true, budget_ms = 50 }, function(m)
  local loss = m["train/loss"]
  if loss ~= loss or math.abs(loss) == math.huge then return end
  if #losses >= lines and loss > factor * average() then
    optim.lr_scale = optim.lr_scale / 2
    ckpt.save("spike-" .. m.step)
    print(("step %d: loss %.4f, average %.4f: lr_scale %g"):format(m.step, loss, average(), optim.lr_scale))
    losses = {}
  end
  losses[#losses + 1] = loss
  if #losses > lines then table.remove(losses, 1) end
end)
