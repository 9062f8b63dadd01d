--- Kept charges: any process changes a charge by its id, each cell of it once. The record of a charge on this slot:
-- the number of its cells and of its identities (1 byte each), its end in ms (6), for each cell whether its charge is taken (1),
-- for each identity the name of its epoch (12), and the text of the store with the reply to the charge.
-- An epoch is the time between two resets of an identity under a policy. Its key has when it may end (6) and its name, and lives
-- at least as long as each record of it. A reset deletes the key, so that earlier records count for nothing.
-- In ARGV, from `at` on: the index in KEYS of the record, which the keys of epochs follow; their number; for how many ms the
-- charge is kept. Then for a charge the name of a new epoch, and the text; for a change for each cell the number of its identity, from
-- 1, or 0 if it is left alone; less than 0 if it is, and the change is a renewal or takes no cell, so that it matters whether the
-- id is known.
local UNKNOWN, BEFORE, DONE, RENEW = 0, 1, 2, 5
local EPOCH_AT, HEAD, EPOCH = 6, 8, 12
-- Whether each cell of the current charge is changed now.
local taken = {}

--- Lets an epoch live as long as a record. `epoch`: the value of its key, or a new one.
local function charges_extend(key, epoch, forMs)
  if unpackBytes('>I6', epoch) < now + forMs then
    call('SET', key, packBytes('>I6', now + 2 * forMs) .. sub(epoch, EPOCH_AT + 1), 'PX', 2 * forMs + slack)
  end
end

--- The value of the key of an epoch; '' if there is none.
local function charges_epoch(key)
  local epoch = tryCall('GET', key)
  requireRead(epoch)
  if type(epoch) ~= 'string' or #epoch ~= EPOCH_AT + EPOCH then epoch = '' end
  return epoch
end

--- Keeps a charge. `said`: the reply to it.
local function charges_keep(at, cells, said)
  local record, identities, forMs, fresh = number(at), number(at + 1), number(at + 2), ARGV[at + 3]
  local epochs = ''
  for i = record + 1, record + identities do
    local epoch = charges_epoch(KEYS[i])
    if epoch == '' then epoch = packBytes('>I6', 0) .. fresh end
    charges_extend(KEYS[i], epoch, forMs)
    epochs = epochs .. sub(epoch, EPOCH_AT + 1)
  end
  local head = packBytes('>BBI6', cells, identities, now + forMs)
  call('SET', KEYS[record], head .. rep('\0', cells) .. epochs .. ARGV[at + 4] .. packBytes('>I6', now) .. said, 'PX', forMs + slack)
end

--- Marks the cells of a charge that are changed now, in the record and in `taken`, and returns the outcome.
local function charges_take(at, cells, op)
  local record, identities, forMs = number(at), number(at + 1), number(at + 2)
  local value = tryCall('GET', KEYS[record])
  requireRead(value)
  for c = 1, cells do taken[c] = false end
  if type(value) ~= 'string' or #value < HEAD then return UNKNOWN end
  local _, _, ends = unpackBytes('>BBI6', value)
  if ends <= now then return UNKNOWN end
  local outcome, marks, isKnown, takesNone = UNKNOWN, '', false, true
  for c = 1, cells do
    local mark, i = sub(value, HEAD + c, HEAD + c), number(at + 2 + c)
    if i > 0 then takesNone = false end
    if i ~= 0 then
      local isTaken = i > 0
      i = max(i, -i)
      local from = HEAD + cells + (i - 1) * EPOCH
      local epoch = charges_epoch(KEYS[record + i])
      if epoch ~= '' and sub(epoch, EPOCH_AT + 1) == sub(value, from + 1, from + EPOCH) then
        isKnown = true
        if not isTaken then
          -- Stays as it is.
        elseif mark == '\0' then
          outcome = DONE
          taken[c] = true
          if op ~= RENEW then mark = '\1' end
        elseif outcome == UNKNOWN then
          outcome = BEFORE
        end
      end
    end
    marks = marks .. mark
  end
  -- Before the change: a charge that is marked and not changed stays, while one that is changed twice would give units away.
  if outcome == DONE and op ~= RENEW then call('SETRANGE', KEYS[record], HEAD, marks) end
  if isKnown and takesNone then outcome = op == RENEW and DONE or BEFORE end
  if isKnown and op == RENEW and ends < now + forMs then
    call('SET', KEYS[record], packBytes('>BBI6', cells, identities, now + forMs) .. sub(value, HEAD + 1), 'PX', forMs + slack)
    for i = record + 1, record + identities do
      local epoch = charges_epoch(KEYS[i])
      if epoch ~= '' then charges_extend(KEYS[i], epoch, forMs) end
    end
  end
  return outcome
end
