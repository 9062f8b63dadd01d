--- Cells that share a key, which is read once and written once. The value: when the key expires (6 bytes); the state of each
-- cell, all zero where it has none; and where any of them has a record of refunds, 13 bytes of each for that.
-- The first of the cells that share the key at hand, 0 where there is but one; the cell at hand.
local joint, mine
local NO_REFUNDS = rep('\0', 13)
-- By kind: how many bytes the state of cell c has.
local size = {}
-- By cell: after which byte of the value its state comes, and how many it has.
local after, bytes = {}, {}
-- By the first cell of a key: how many share it, after how many bytes their states end, and what is stored, or false.
local cellsOf, endOf, storedOf = {}, {}, {}
-- By cell of the key at hand: what is put in the place of its state, false where nothing is, and in that of its refunds. How
-- many that is, for how many ms it has to live, and whether the value has records of refunds.
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

--- What is stored of the refunds of cell c, mostly ''.
local function joint_refunds(c)
  local stored, at = storedOf[joint], endOf[joint] + 13 * (c - joint)
  if not stored or #stored <= at then return '' end
  local refunds = sub(stored, at + 1, at + 13)
  if refunds == NO_REFUNDS then return '' end
  return refunds
end

--- Before anything is put for the cell at hand.
local function joint_begin()
  if mine == joint then
    puts, putLife = 0, 0
    tells = storedOf[joint] and #storedOf[joint] > endOf[joint]
  end
  put[mine] = false
end

--- Takes `state` for that of the cell at hand. It has to live for `life` ms more.
local function joint_put(state, refunds, life)
  put[mine], putRefunds[mine] = state, refunds
  puts, putLife = puts + 1, max(putLife, life)
  if refunds ~= '' then tells = true end
end

--- Writes what was put for cells of the key at hand, of which this is the last, and beside it what is stored of the others.
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
      -- A key seen before lives a little longer, so that most charges need not touch its expiry.
      if stored then ends = ends + min(LINGER, putLife) end
      call('SET', key, packBytes('>I6', ends) .. value, 'PX', ends - now + slack)
    end
  end
end
