--- Cells that share a key, which is read once and written once. The value: when the key expires (6 bytes); the state of
-- each cell, all zero if it has none; and if any of them has a record of refunds, 13 bytes per cell for that. `joint`:
-- the first of the cells that share the current key, 0 if there is only one. `mine`: the current cell.
local joint, mine
local NO_REFUNDS = rep('\0', 13)
-- By kind: a function that returns the number of bytes of cell c's state.
local size = {}
-- By cell: the offset of its state in the value, and its number of bytes.
local after, bytes = {}, {}
-- By the first cell of a key: the number of cells that share it, the end of their states in bytes, and the stored
-- value, or false.
local cellsOf, endOf, storedOf = {}, {}, {}
-- By cell of the current key: its new state, false if it is unchanged, and its new record of refunds. Then the number
-- of new states, the ms for which they must live, and whether the value has records of refunds.
local put, putRefunds, puts, putLife, tells = {}, {}, nil, nil, nil

local function joint_prepare(c, first, length)
  if first == c then cellsOf[c], endOf[c] = 0, 6 end
  after[c], bytes[c] = endOf[first], length
  cellsOf[first], endOf[first] = cellsOf[first] + 1, endOf[first] + length
end

local function joint_read(key)
  local stored = tryCall('GET', key)
  local length = stored and #stored
  if length ~= endOf[joint] and length ~= endOf[joint] + 13 * cellsOf[joint] then
    requireRead(stored)
    stored = false
  end
  storedOf[joint] = stored
end

--- The stored record of refunds of cell c, usually ''.
local function joint_refunds(c)
  local stored, at = storedOf[joint], endOf[joint] + 13 * (c - joint)
  if not stored or #stored <= at then return '' end
  local refunds = sub(stored, at + 1, at + 13)
  if refunds == NO_REFUNDS then return '' end
  return refunds
end

--- Call it before a state is put for the current cell.
local function joint_begin()
  if mine == joint then
    puts, putLife = 0, 0
    tells = storedOf[joint] and #storedOf[joint] > endOf[joint]
  end
  put[mine] = false
end

--- Sets the state of the current cell, which must live for `life` ms more.
local function joint_put(state, refunds, life)
  put[mine], putRefunds[mine] = state, refunds
  puts, putLife = puts + 1, max(putLife, life)
  if refunds ~= '' then tells = true end
end

--- Writes the new states of the current key, of which this is the last cell, together with the stored states of the
-- others.
local function joint_write(key)
  local stored = storedOf[joint]
  if puts > 0 and (stored or putLife > 0) then
    if puts < cellsOf[joint] then
      for c = joint, mine do
        if not put[c] then
          put[c] = stored and sub(stored, after[c] + 1, after[c] + bytes[c]) or rep('\0', bytes[c])
          putRefunds[c] = joint_refunds(c)
        end
      end
    end
    local value = concat(put, '', joint, mine)
    if tells then
      for c = joint, mine do value = value .. (putRefunds[c] == '' and NO_REFUNDS or putRefunds[c]) end
    end
    local ends, expires = now + max(1, putLife), stored and unpackBytes('>I6', stored) or 0
    if putLife <= 0 and puts == cellsOf[joint] and not tells then
      call('DEL', key)
    elseif ends <= expires then
      call('SETRANGE', key, '6', value)
    else
      -- A key in use lives slightly longer, so that most charges need not change its expiry.
      if stored then ends = ends + min(LINGER, putLife) end
      call('SET', key, packBytes('>I6', ends) .. value, 'PX', ends - now + slack)
    end
  end
end
