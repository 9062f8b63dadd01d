// Generated from lua/ by `npm run generate`. Do not edit: change the Lua and run that again.

/** A script for Redis, and the name EVALSHA knows it by. */
export interface LuaScript {
  readonly name: string
  /** Of exactly `source`, 40 hexadecimal digits. */
  readonly sha1: string
  readonly source: string
}

/** Kinds of cells, in the order of the numbers by which decide.lua knows them, from 1. */
export const KINDS = ['bucket', 'log', 'segments', 'counter', 'concurrency'] as const

/** Those of which equal decisions on one key are made at once. */
export const TOGETHER_KINDS = ['bucket', 'log', 'counter'] as const

/** Commands that cells of a kind call beside those that all kinds call, with the words after the key. */
export const KIND_CALLS: Readonly<Record<(typeof KINDS)[number], readonly (readonly [string, ...string[]])[]>> = {
  bucket: [],
  log: [['GETRANGE', '0', '0'], ['PEXPIRE', '1']],
  segments: [],
  counter: [],
  concurrency: [['PEXPIRE', '1'], ['ZCOUNT', '0', '0'], ['ZCARD'], ['ZSCORE', 'a'], ['ZRANGE', '0', '0'], ['ZRANGEBYSCORE', '0', '0'], ['ZREMRANGEBYSCORE', '0', '0'], ['ZREM', 'a'], ['ZADD', '0', 'a'], ['DEL']],
}

// Added to the op of decisions: see decide.lua.
export const RESERVING = 8
export const TOGETHER = 16
export const STRIKING = 32
export const KEEPING = 64

// The first byte of what a decision says: see decide.lua.
export const REFUSED = 0
export const ADMITTED = 1
export const BLOCKED = 2
export const ELSEWHERE = 3
export const REFUNDS = 4
export const EQUALS = 8
export const BEGUN = 16

// Ops are sent as they are. This does not compile where decide.lua has other numbers for them than the port.
;({ CONSUME: 0, PEEK: 1, CHARGE: 2, REFUND: 3, RELEASE: 4 }) satisfies Partial<typeof import('../../store/store.js')>

/** A part of a script that some batches do not need. */
export interface Piece {
  readonly sections: readonly Section[]
  readonly source: string
}

/** A script in the order of its lines. A piece is left out where one of the sections that it stands in is not needed. */
export interface CutScript {
  readonly name: string
  readonly pieces: readonly Piece[]
}

/** A script for cells of one kind. */
export interface KindScript extends CutScript {
  readonly kind: (typeof KINDS)[number]
  /** For cells that several limits share. */
  readonly isShared: boolean
  /** For several cells under one key. */
  readonly isJoint: boolean
}

export type Section = 'bans' | 'bucket' | 'calendar' | 'charges' | 'concurrency' | 'counter' | 'debit' | 'joint' | 'log' | 'segments' | 'several' | 'turns'

const piece1: Piece = { sections: ['bucket', 'joint'], source: `end` }
const piece2: Piece = { sections: ['segments', 'joint'], source: `end` }
const piece3: Piece = { sections: ['counter'], source: `end` }
const piece4: Piece = { sections: ['counter', 'joint'], source: `end` }
const piece5: Piece = { sections: ['counter', 'joint'], source: `if joint > 0 then
local state, life = packBytes('>I7I6', count, start), count > 0 and start + windowMs - now or 0
put[mine], putRefunds[mine] = state, ''
puts, putLife = puts + 1, putLife > life and putLife or life
if '' ~= '' then
tells = true
end
else` }
const piece6: Piece = { sections: ['counter'], source: `if count == 0 then
call('DEL', key)
elseif since == start then
call('SETRANGE', key, '0', packBytes('>I7', count))
elseif not since then
if newCountOf[own] ~= count then
newCountOf[own], newStateOf[own] = count, packBytes('>I7I6', count, start)
newLifeOf[own] = format('%d', start + windowMs - now + slack)
end
call('SET', key, newStateOf[own], 'PX', newLifeOf[own])
else
call('SET', key, packBytes('>I7I6', count, start), 'PX', start + windowMs - now + slack)
end` }
const piece7: Piece = { sections: ['bans'], source: `local bans_begun` }
const piece8: Piece = { sections: ['turns'], source: `local turns_turnsNow = now
if clock ~= '' then
local turns_time = call('TIME')
turns_turnsNow = turns_time[1] * 1000 + floor(turns_time[2] / 1000)
end
local turns_waitingMarker, turns_record = ARGV[#ARGV], ARGV[#ARGV - 1] + 0
local turns_isMarked, turns_anyRecord = turns_waitingMarker == '' or call('EXISTS', turns_waitingMarker) > 0, false
if turns_isMarked then
for turns_k = turns_record, #KEYS, 1000 do
if call('EXISTS', unpack(KEYS, turns_k, turns_k + 999 < #KEYS and turns_k + 999 or #KEYS)) > 0 then
turns_anyRecord = true
end
end
end` }
const piece9: Piece = { sections: [], source: `local blockKeys = ARGV[2] + 0
local a, block, cell = 4, 1, blockKeys > -blockKeys and blockKeys or -blockKeys
if blockKeys < 0 then
if tryCall('GET', KEYS[1]) then
return ''
end
end
local anyBlocked = blockKeys > 0
if #KEYS == 0 then
KEYS, block = ARGV, ARGV[#ARGV] + 0
cell = block - 1 + blockKeys
elseif anyBlocked then
anyBlocked = call('EXISTS', unpack(KEYS, 1, blockKeys)) > 0
end
for _ = 1, ARGV[3] + 0 do
local identities, cells = ARGV[a] + 0, ARGV[a + 1] + 0
a = a + 2` }
const piece10: Piece = { sections: ['turns'], source: `local turns_records = ARGV[a - 1] + 0` }
const piece11: Piece = { sections: ['bans'], source: `local bans_terms = ARGV[a] + 0
local bans_ban = a + 1
a = bans_ban + bans_terms` }
const piece12: Piece = { sections: [], source: `local runs = ARGV[a] + 0
a = a + 1
for __2 = 1, runs do
local op, decisions = ARGV[a] + 0, ARGV[a + 1] + 0` }
const piece13: Piece = { sections: ['bans'], source: `local bans_isStriking = op >= 32
if bans_isStriking then
op = op - 32
end` }
const piece14: Piece = { sections: [], source: `local equals = 1
if op >= 16 then
op, equals, decisions = op - 16, decisions, 1
end
for c = 1, cells do
costs[c] = ARGV[a + 1 + c] + 0
needs[c] = costs[c]
end
a = a + 2 + cells
if op >= 8 then
op = op - 8
for c = 1, cells do
needs[c] = ARGV[a - 1 + c] + 0
end
a = a + cells
end` }
const piece15: Piece = { sections: ['turns'], source: `local turns_asked = op` }
const piece16: Piece = { sections: [], source: `for __3 = 1, decisions do` }
const piece17: Piece = { sections: ['bans'], source: `local bans_jitter = a
if bans_isStriking then
a = a + 1
end` }
const piece18: Piece = { sections: ['turns'], source: `op = turns_asked
local turns_behindMs, turns_anyWaits, turns_isAdmitted = 0, false, false
local turns_queue, turns_queueOthers, turns_queueLatest, turns_tellsAt = 0, '', 0, 0
local turns_process, turns_ttlMs = '', 0
if op <= 2 then
turns_process = ARGV[a]
local turns_class, turns_since = 0, 0
a = a + 1
if turns_process ~= '' then
turns_queue, turns_class, turns_since, turns_ttlMs = ARGV[a] + 0, ARGV[a + 1] + 0, turns_turnsNow - (ARGV[a + 2] + 0), ARGV[a + 3] + 0
turns_tellsAt = a + 4
a = turns_tellsAt + 1 + 2 * (ARGV[turns_tellsAt] + 0)
a = a + 1 + 2 * (ARGV[a] + 0)
end
if turns_anyRecord or turns_process ~= '' then
local turns_to, turns_queue_2 = turns_record + turns_records - 1, turns_record + turns_queue - 1
local turns_behindMs_2, turns_anyWaits_2, turns_queueOthers_2, turns_queueLatest_2 = 0, false, '', turns_turnsNow
for turns_k = turns_record, turns_to do
local turns_others, turns_latest
local turns_key = KEYS[turns_k]
local turns_record_2 = redis.pcall('GET', turns_key)
if type(turns_record_2) == 'table' and not string.match(turns_record_2.err, '^WRONGTYPE') then
error(turns_record_2.err)
end
local turns_others_2, turns_latest_2 = '', turns_turnsNow
if type(turns_record_2) ~= 'string' or #turns_record_2 % 34 ~= 0 then
turns_others, turns_latest = turns_others_2, turns_latest_2
else
for turns_at = 1, #turns_record_2, 34 do
local turns_ends = struct.unpack('>I6', turns_record_2, turns_at + 28)
if turns_ends > turns_turnsNow and string.sub(turns_record_2, turns_at, turns_at + 11) ~= turns_process then
turns_others_2 = turns_others_2 .. string.sub(turns_record_2, turns_at, turns_at + 33)
if turns_ends > turns_latest_2 then
turns_latest_2 = turns_ends
end
end
end
turns_others, turns_latest = turns_others_2, turns_latest_2
end
if turns_others ~= '' then
turns_anyWaits_2 = true
end
if turns_k == turns_queue_2 then
turns_queueOthers_2, turns_queueLatest_2 = turns_others, turns_latest
end
for turns_at = 1, #turns_others, 34 do
local turns_otherClass, turns_otherSince, turns_ends = struct.unpack('>ddI6', turns_others, turns_at + 12)
if turns_process == '' or turns_otherClass ~= turns_class and turns_otherSince < turns_since then
turns_behindMs_2 = turns_behindMs_2 > turns_ends - turns_turnsNow and turns_behindMs_2 or turns_ends - turns_turnsNow
end
end
end
turns_behindMs, turns_anyWaits, turns_queueOthers, turns_queueLatest = turns_behindMs_2, turns_anyWaits_2, turns_queueOthers_2, turns_queueLatest_2
end
if turns_behindMs > 0 then
op = 1
end
end` }
const piece19: Piece = { sections: ['bans'], source: `if bans_begun and bans_terms > 0 and op <= 2 then
local bans_base = string.sub(KEYS[cell + (ARGV[bans_ban] + 0)], 1, -1 - (ARGV[bans_ban + 1] + 0)) .. ARGV[bans_ban + 2]
if bans_begun[bans_base] and bans_begun[bans_base][1] > ends then
ends, reason = bans_begun[bans_base][1], bans_begun[bans_base][2]
end
end` }
const piece20: Piece = { sections: ['joint'], source: `if joint > 0 and head[c + 1] ~= joint then
local stored = storedOf[joint]
if puts > 0 and (stored or putLife > 0) then
if puts < cellsOf[joint] then
for c_2 = joint, mine do
if not put[c_2] then
put[c_2] = stored and sub(stored, after[c_2] + 1, after[c_2] + bytes[c_2]) or rep('\\0', bytes[c_2])
local joint_refunds_result
local stored_2, at = storedOf[joint], endOf[joint] + 13 * (c_2 - joint)
if not stored_2 or #stored_2 <= at then
joint_refunds_result = ''
else
local refunds = sub(stored_2, at + 1, at + 13)
if refunds == NO_REFUNDS then
joint_refunds_result = ''
else
joint_refunds_result = refunds
end
end
putRefunds[c_2] = joint_refunds_result
end
end
end
local value = concat(put, '', joint, mine)
if tells then
for c_2 = joint, mine do
value = value .. (putRefunds[c_2] == '' and NO_REFUNDS or putRefunds[c_2])
end
end
local ends_2, expires = now + (1 > putLife and 1 or putLife), stored and unpackBytes('>I6', stored) or 0
if putLife <= 0 and puts == cellsOf[joint] and not tells then
call('DEL', key)
elseif ends_2 <= expires then
call('SETRANGE', key, '6', value)
else
if stored then
ends_2 = ends_2 + (10000 < putLife and 10000 or putLife)
end
call('SET', key, packBytes('>I6', ends_2) .. value, 'PX', ends_2 - now + slack)
end
end
end` }
const piece21: Piece = { sections: [], source: `end` }
const piece22: Piece = { sections: ['turns'], source: `turns_isAdmitted = allowed and turns_behindMs == 0
if turns_behindMs > 0 then
possible = false
end` }
const piece23: Piece = { sections: ['bans'], source: `local bans_banEnds, bans_banReason = 0, ''
if bans_isStriking and not allowed and possible then
local bans_base = string.sub(KEYS[cell + (ARGV[bans_ban] + 0)], 1, -1 - (ARGV[bans_ban + 1] + 0)) .. ARGV[bans_ban + 2]
local bans_marker, bans_jitter_2, bans_p, bans_to = ARGV[bans_ban + 3], ARGV[bans_jitter] + 0, bans_ban + 4, bans_ban + bans_terms - 1
local bans_after, bans_withinMs, bans_forgetAfterMs = ARGV[bans_p] + 0, ARGV[bans_p + 1] + 0, ARGV[bans_p + 2] + 0
local bans_key = bans_base .. 'strikes'
local bans_stored = tryCall('GET', bans_key)
local bans_rung, bans_since, bans_strikes = 0, now, ''
if bans_stored and #bans_stored >= 7 and floor((#bans_stored - 7) / 8) * 8 == #bans_stored - 7 then
bans_rung, bans_since = struct.unpack('>BI6', bans_stored)
bans_strikes = string.sub(bans_stored, 8)
else
if type(bans_stored) == 'table' and not string.match(bans_stored.err, '^WRONGTYPE') then
if not string.match(bans_stored.err, 'non local key') then
error(bans_stored.err)
end
elsewhere = true
end
end
local bans_last
if bans_strikes == '' then
bans_last = now
else
bans_last = (struct.unpack('>I6', bans_strikes, #bans_strikes - 7))
end
local bans_at
if bans_last > now and bans_last <= now + bans_withinMs then
bans_at = bans_last
else
bans_at = now
end
if bans_last > bans_at then
local bans_kept = ''
for bans_i = 1, #bans_strikes, 8 do
local bans_since_2, bans_weight = struct.unpack('>I6I2', bans_strikes, bans_i)
bans_kept = bans_kept .. packBytes('>I6I2', bans_since_2 < bans_at and bans_since_2 or bans_at, bans_weight)
end
bans_strikes = bans_kept
end
if bans_at - bans_since >= bans_forgetAfterMs then
bans_rung = 0
else
bans_rung = bans_rung
end
local bans_live, bans_count
local bans_from, bans_units = 1, 0
for bans_i = 1, #bans_strikes, 8 do
local bans_since_2, bans_weight = struct.unpack('>I6I2', bans_strikes, bans_i)
if bans_at - bans_since_2 >= bans_withinMs then
bans_from = bans_i + 8
else
bans_units = bans_units + bans_weight
end
end
bans_live, bans_count = string.sub(bans_strikes, bans_from), bans_units
bans_count = bans_count + 1
local bans_ends, bans_reason = 0, ''
if bans_count < bans_after then
if bans_rung > 0 then
bans_since = bans_at > bans_since and bans_at or bans_since
else
bans_since = bans_at
end
local bans_strikes_2 = bans_live .. packBytes('>I6I2', bans_at, 1)
local bans_strikes_end_result
local bans_ends_2 = 0
if bans_strikes_2 ~= '' then
local bans_strikes_last_result
if bans_strikes_2 == '' then
bans_strikes_last_result = 0
else
bans_strikes_last_result = (struct.unpack('>I6', bans_strikes_2, #bans_strikes_2 - 7))
end
bans_ends_2 = bans_strikes_last_result + bans_withinMs
end
if bans_rung > 0 then
bans_ends_2 = bans_ends_2 > bans_since + bans_forgetAfterMs and bans_ends_2 or bans_since + bans_forgetAfterMs
end
bans_strikes_end_result = bans_ends_2
local bans_life = bans_strikes_end_result - now
if bans_life > 0 then
call('SET', bans_key, packBytes('>BI6', bans_rung, bans_since) .. bans_strikes_2, 'PX', bans_life + slack)
else
call('DEL', bans_key)
end
else
bans_rung = bans_rung + 1 < bans_to - bans_p - 2 and bans_rung + 1 or bans_to - bans_p - 2
local bans_life = ARGV[bans_p + 2 + bans_rung] + 0 + bans_jitter_2
bans_ends = now + bans_life
bans_reason = '\\0' .. string.format('%.0f', bans_rung) .. ' ' .. string.format('%.0f', bans_count) .. ' ' .. ''
local bans_strikes_end_result
local bans_ends_2 = 0
if '' ~= '' then
local bans_strikes_last_result
if '' == '' then
bans_strikes_last_result = 0
else
bans_strikes_last_result = (struct.unpack('>I6', '', #'' - 7))
end
bans_ends_2 = bans_strikes_last_result + bans_withinMs
end
if bans_rung > 0 then
bans_ends_2 = bans_ends_2 > bans_ends + bans_forgetAfterMs and bans_ends_2 or bans_ends + bans_forgetAfterMs
end
bans_strikes_end_result = bans_ends_2
local bans_life_2 = bans_strikes_end_result - now
if bans_life_2 > 0 then
call('SET', bans_key, packBytes('>BI6', bans_rung, bans_ends) .. '', 'PX', bans_life_2 + slack)
else
call('DEL', bans_key)
end
call('SET', bans_base .. 'block', string.format('%.0f', bans_ends) .. ' ' .. bans_reason, 'PX', bans_life + slack)
if bans_marker ~= '' and call('PTTL', bans_marker) <= bans_life + slack then
call('SET', bans_marker, '1', 'PX', bans_life + slack)
end
end
bans_banEnds, bans_banReason = bans_ends, bans_reason
if bans_banEnds > 0 then
bans_begun = bans_begun or {}
bans_begun[bans_base] = { bans_banEnds, bans_banReason }
end
end` }
const piece24: Piece = { sections: ['bans'], source: `if bans_banEnds == 0 then` }
const piece25: Piece = { sections: ['bans'], source: `end` }
const piece26: Piece = { sections: [], source: `end
end` }
const piece27: Piece = { sections: [], source: `local blockKeys = ARGV[2] + 0
local a, block, cell = 4, 1, blockKeys > -blockKeys and blockKeys or -blockKeys
if blockKeys < 0 then
if tryCall('GET', KEYS[1]) then
return ''
end
end
local anyBlocked = blockKeys > 0
if #KEYS == 0 then
KEYS, block = ARGV, ARGV[#ARGV] + 0
cell = block - 1 + blockKeys
elseif anyBlocked then
anyBlocked = call('EXISTS', unpack(KEYS, 1, blockKeys)) > 0
end
for _ = 1, ARGV[3] + 0 do
local identities = ARGV[a] + 0
a = a + 2` }
const piece28: Piece = { sections: [], source: `local equals = 1
if op >= 16 then
op, equals, decisions = op - 16, decisions, 1
end
costs = ARGV[a + 2] + 0
needs = costs
a = a + 3
if op >= 8 then
op = op - 8
needs = ARGV[a + 0] + 0
a = a + 1
end` }
const piece29: Piece = { sections: [], source: `local ends, reason = 0, ''
elsewhere = false
if anyBlocked and op <= 2 then
for b = block, block + identities - 1 do
local value = tryCall('GET', KEYS[b])
if type(value) == 'table' and not string.match(value.err, '^WRONGTYPE') then
if not string.match(value.err, 'non local key') then
error(value.err)
end
elsewhere = true
end
if type(value) == 'string' then
local last_2, said = string.match(value, '^(%d+) (.*)$')
if last_2 and tonumber(last_2) > (now > ends and now or ends) then
ends, reason = tonumber(last_2), said
end
end
end
end` }
const piece30: Piece = { sections: [], source: `if elsewhere then
local piece = packBytes('B', 3)
if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
else` }
const piece31: Piece = { sections: [], source: `for outcome_2 = outcome, admitted < equals and 0 or outcome, -1 do
local said = outcome_2
if refunds ~= '' then
said = outcome_2 + 4
end
if beyond then
local piece = packBytes('>BI7I6', said, beyond, since < instant and since or instant) .. refunds
if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
else
local piece = packBytes('>BI7I6', said, debt, instant) .. refunds
if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
end
end` }
const piece32: Piece = { sections: ['bans'], source: `if bans_banEnds > 0 then
local bans_piece = packBytes('>BI7I2', 16, bans_banEnds - now, #bans_banReason) .. bans_banReason
if pieces == 0 then
reply = reply .. bans_piece
else
more = more or {}
more[pieces] = bans_piece
end
pieces = pieces + 1
end` }
const piece33: Piece = { sections: ['turns'], source: `if turns_asked <= 2 then
if turns_queue > 0 and turns_asked ~= 1 then
if turns_isAdmitted then
turns_tellsAt = turns_tellsAt + 1 + 2 * (ARGV[turns_tellsAt] + 0)
end
local turns_turns_write_result
local turns_key, turns_a, turns_latest = KEYS[turns_record + turns_queue - 1], turns_tellsAt, turns_queueLatest
local turns_record_2 = turns_queueOthers
for turns__ = 1, ARGV[turns_a] do
local turns_class, turns_aheadMs = ARGV[turns_a + 1], ARGV[turns_a + 2]
turns_record_2 = turns_record_2 .. turns_process .. struct.pack('>ddI6', turns_class, turns_turnsNow - turns_aheadMs, turns_turnsNow + turns_ttlMs)
if turns_turnsNow + turns_ttlMs > turns_latest then
turns_latest = turns_turnsNow + turns_ttlMs
end
turns_a = turns_a + 2
end
if turns_record_2 == '' then
redis.call('DEL', turns_key)
turns_turns_write_result = false
else
redis.call('SET', turns_key, turns_record_2, 'PX', string.format('%.0f', turns_latest - turns_turnsNow))
if turns_waitingMarker ~= '' then
local turns_ms = turns_latest - turns_turnsNow
if redis.call('PTTL', turns_waitingMarker) < turns_ms then
redis.call('SET', turns_waitingMarker, '', 'PX', string.format('%.0f', turns_ms))
end
end
turns_turns_write_result = true
end
if turns_turns_write_result then
turns_anyWaits, turns_isMarked, turns_anyRecord = true, true, true
end
end
local turns_waits = turns_isMarked and 1 or 0
if turns_anyWaits then
turns_waits = 2
end
local turns_piece = packBytes('>I2B', turns_behindMs < 65535 and turns_behindMs or 65535, turns_waits)
if pieces == 0 then
reply = reply .. turns_piece
else
more = more or {}
more[pieces] = turns_piece
end
pieces = pieces + 1
turns_record = turns_record + turns_records
end` }
const piece34: Piece = { sections: [], source: `block = block + identities
cell = cell + 1
end
end
end
if more then
return reply .. concat(more)
end
return reply` }
const piece35: Piece = { sections: [], source: `block = block + identities
cell = cell + keys - cells
cell = cell + cells
end
end
end
if more then
return reply .. concat(more)
end
return reply` }
const piece36: Piece = { sections: [], source: `costs = ARGV[a + 2] + 0
needs = costs
a = a + 3
if op >= 8 then
op = op - 8
needs = ARGV[a + 0] + 0
a = a + 1
end` }
const piece37: Piece = { sections: ['calendar'], source: `local firstBound, lastBound` }
const piece38: Piece = { sections: ['calendar'], source: `if start ~= since and firstBound < lastBound then
local nearest = ARGV[lastBound]
for i = lastBound, firstBound, -1 do
if ARGV[i] > instant then
nearest = ARGV[i]
end
end
start = nearest + floor((instant - nearest) / windowMs) * windowMs
end` }
const piece39: Piece = { sections: [], source: `for outcome_2 = outcome, admitted < equals and 0 or outcome, -1 do
local piece = packBytes('>BI7I6', outcome_2, count, start)
if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
end` }
const piece40: Piece = { sections: ['calendar'], source: `firstBound, lastBound = p + 4, last[c]` }
const piece41: Piece = { sections: ['turns'], source: `local turns_waiting = call('EXISTS', unpack(KEYS, 3))
if turns_waiting == #KEYS - 2 then
return ' '
end` }
const piece42: Piece = { sections: ['turns'], source: `if #KEYS == 3 then
turns_waiting = 1
end
local turns_piece = packBytes('>I2B', 0, turns_waiting)
reply = reply .. turns_piece` }
const piece43: Piece = { sections: [], source: `return reply` }

export const DECIDE: CutScript = { name: 'decide', pieces: [
  { sections: [], source: `local ARGV, KEYS = ARGV, KEYS
local tryCall = redis.pcall
local call, floor, ceil, max, min = redis.call, math.floor, math.ceil, math.max, math.min
local packBytes, unpackBytes = struct.pack, struct.unpack
local sub, rep, format, concat = string.sub, string.rep, string.format, table.concat
local elsewhere
local clock = ARGV[1]
local now
local slack = 0
if clock ~= '' then
now, slack = clock + 0, 3600000
else
local time = call('TIME')
now = time[1] * 1000 + floor(time[2] / 1000)
end
local reply, more, pieces = packBytes('>I6', now), nil, 0` },
  { sections: ['charges'], source: `local said = ''` },
  { sections: [], source: `local function say(piece)` },
  { sections: ['charges'], source: `said = said .. piece` },
  { sections: [], source: `if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
end
local kernel, first, last = {}, {}, {}` },
  { sections: ['joint'], source: `local keyIndex, head = {}, {}` },
  { sections: [], source: `local costs, needs = {}, {}
local prepare, open, look, keep, recall, take, refund, renew, heal, report = {}, {}, {}, {}, {}, {}, {}, {}, {}, {}` },
  { sections: ['debit'], source: `local debit = {}` },
  { sections: [], source: `local room = {}` },
  { sections: ['several'], source: `local kept1, kept2, kept3, kept4, kept5 = {}, {}, {}, {}, {}
local kept6, kept7, kept8, kept9, kept10 = {}, {}, {}, {}, {}` },
  { sections: ['joint'], source: `local joint, mine
local NO_REFUNDS = rep('\\0', 13)
local size = {}
local after, bytes = {}, {}
local cellsOf, endOf, storedOf = {}, {}, {}
local put, putRefunds, puts, putLife, tells = {}, {}, nil, nil, nil` },
  { sections: ['bucket'], source: `do
local function bucket_drain(debt, since, at, limit, stepMs)
local elapsed
if stepMs == 1 then
elapsed = at - since
else
elapsed = floor(at / stepMs) * stepMs - floor(since / stepMs) * stepMs
end
return 0 > debt - elapsed * limit and 0 or debt - elapsed * limit
end
local function bucket_refund(written, debt, refunded, from, at, cost, receipt, before, chargedAt, pace, windowMs, capacity, stepMs)
local forgiven, others = 0, 0 > refunded - before and 0 or refunded - before
if from >= 140737488355328 then
forgiven = 140737488355328
end
if chargedAt < from - forgiven then
if forgiven > 0 then
return written, refunded, from
end
others = capacity * windowMs
end
local own, paidFrom = cost * windowMs, chargedAt < at and chargedAt or at
local left
local elapsed
if stepMs == 1 then
elapsed = at - paidFrom
else
elapsed = floor(at / stepMs) * stepMs - floor(paidFrom / stepMs) * stepMs
end
left = 0 > receipt - elapsed * pace and 0 or receipt - elapsed * pace
local bucket_drain_result
local elapsed_2
if stepMs == 1 then
elapsed_2 = at - paidFrom
else
elapsed_2 = floor(at / stepMs) * stepMs - floor(paidFrom / stepMs) * stepMs
end
bucket_drain_result = 0 > own - elapsed_2 * pace and 0 or own - elapsed_2 * pace
local owed = min(written, debt, own, left - others > bucket_drain_result and left - others or bucket_drain_result)
if owed == 0 then
return written, refunded, from
end
if others == 0 and debt == left then
return 0 > written - own and 0 or written - own, refunded, from
end
if refunded + owed < 9007199254740991 then
return written - owed, refunded + owed, from
end
return written - owed, 0, forgiven + at + 1
end
local own, limit, windowMs, capacity, stepMs
local newDebtOf, newStateOf, newLifeOf = {}, {}, {}
local debt, instant, since, expires, refunds
local pace, beyond
prepare[1] = function(c)
newDebtOf[c] = nil
end` },
  { sections: ['bucket', 'joint'], source: `size[1] = function()
return 13
end` },
  { sections: ['bucket'], source: `open[1] = function(c)
local p = first[c]
own = c
limit, windowMs, capacity, stepMs = ARGV[p], ARGV[p + 1], ARGV[p + 2], ARGV[p + 3]
end` },
  { sections: ['bucket', 'several'], source: `keep[1] = function(c)
kept1[c], kept2[c], kept3[c], kept4[c], kept5[c], kept6[c] = debt, instant, since, expires, refunds, beyond
end
recall[1] = function(c)
debt, instant, since, expires, refunds, beyond = kept1[c], kept2[c], kept3[c], kept4[c], kept5[c], kept6[c]
pace = limit
if beyond then
if beyond <= 2 * (limit > capacity and limit or capacity) * windowMs then
pace = limit
else
pace = ceil(beyond / (2 * windowMs))
end
end
end` },
  { sections: ['bucket'], source: `local function bucket_rewrite(key)` },
  { sections: ['bucket', 'joint'], source: `if joint > 0 then
local life = 0
if debt > 0 then
local bucket_wait_result
local wait
local excess = debt - (capacity - capacity) * windowMs
if excess <= 0 or capacity < (1 < capacity and 1 or capacity) then
wait = 0
else
local steps = ceil(excess / (pace * stepMs))
wait = (floor(instant / stepMs) + steps) * stepMs - instant
end
if wait > 0 then
bucket_wait_result = wait + instant - now
else
bucket_wait_result = wait
end
life = 1 > bucket_wait_result and 1 or bucket_wait_result
end
local state = packBytes('>I7I6', debt, instant)
put[mine], putRefunds[mine] = state, refunds
puts, putLife = puts + 1, putLife > life and putLife or life
if refunds ~= '' then
tells = true
end
else` },
  { sections: ['bucket'], source: `if debt == 0 and refunds == '' then
call('DEL', key)
else
local bucket_wait_result
local wait
local excess = debt - (capacity - capacity) * windowMs
if excess <= 0 or capacity < (1 < capacity and 1 or capacity) then
wait = 0
else
local steps = ceil(excess / (pace * stepMs))
wait = (floor(instant / stepMs) + steps) * stepMs - instant
end
if wait > 0 then
bucket_wait_result = wait + instant - now
else
bucket_wait_result = wait
end
local ends = now + (1 > bucket_wait_result and 1 or bucket_wait_result)
if ends <= expires then
local state = packBytes('>I7I6', debt, instant)
if refunds ~= '' then
state = packBytes('>I7I6I6', debt, instant, expires) .. refunds
end
call('SETRANGE', key, '0', state)
else
ends = ends + min(10000, ceil(capacity * windowMs / limit))
call('SET', key, packBytes('>I7I6I6', debt, instant, ends) .. refunds, 'PX', ends - now + slack)
end
end` },
  piece1,
  { sections: ['bucket'], source: `end` },
  { sections: ['bucket'], source: `look[1] = function(key, cost)` },
  { sections: ['bucket', 'joint'], source: `if joint > 0 then
local stored = storedOf[joint]
local joint_refunds_result
local stored_2, at = storedOf[joint], endOf[joint] + 13 * (mine - joint)
if not stored_2 or #stored_2 <= at then
joint_refunds_result = ''
else
local refunds_2 = sub(stored_2, at + 1, at + 13)
if refunds_2 == NO_REFUNDS then
joint_refunds_result = ''
else
joint_refunds_result = refunds_2
end
end
debt, refunds = 0, joint_refunds_result
if stored then
debt, since = unpackBytes('>I7I6', stored, after[mine] + 1)
end
if debt > 0 or refunds ~= '' then
if since > now and since <= now + windowMs then
instant = since
else
instant = now
end
local bucket_paceOf_result
if debt <= 2 * (limit > capacity and limit or capacity) * windowMs then
bucket_paceOf_result = limit
else
bucket_paceOf_result = ceil(debt / (2 * windowMs))
end
pace, beyond = bucket_paceOf_result, nil
if pace ~= limit then
beyond = debt
end
local bucket_atPace_result
if pace == limit then
bucket_atPace_result = debt
else
bucket_atPace_result = pace * 2 * windowMs
end
local debt_2, since_2 = bucket_atPace_result, since < instant and since or instant
local elapsed
if stepMs == 1 then
elapsed = instant - since_2
else
elapsed = floor(instant / stepMs) * stepMs - floor(since_2 / stepMs) * stepMs
end
debt = 0 > debt_2 - elapsed * pace and 0 or debt_2 - elapsed * pace
else
instant, since, pace, beyond = now, nil, limit, nil
end
else` },
  { sections: ['bucket'], source: `local stored = tryCall('GET', key)
local bytes_2 = stored and #stored
if bytes_2 == 19 or bytes_2 == 32 then
if bytes_2 == 19 then
debt, since, expires = unpackBytes('>I7I6I6', stored)
refunds = ''
else
debt, since, expires, refunds = unpackBytes('>I7I6I6c13', stored)
end
if since > now and since <= now + windowMs then
instant = since
else
instant = now
end
local bucket_paceOf_result
if debt <= 2 * (limit > capacity and limit or capacity) * windowMs then
bucket_paceOf_result = limit
else
bucket_paceOf_result = ceil(debt / (2 * windowMs))
end
pace, beyond = bucket_paceOf_result, nil
if pace ~= limit then
beyond = debt
end
local bucket_atPace_result
if pace == limit then
bucket_atPace_result = debt
else
bucket_atPace_result = pace * 2 * windowMs
end
local debt_2, since_2 = bucket_atPace_result, since < instant and since or instant
local elapsed
if stepMs == 1 then
elapsed = instant - since_2
else
elapsed = floor(instant / stepMs) * stepMs - floor(since_2 / stepMs) * stepMs
end
debt = 0 > debt_2 - elapsed * pace and 0 or debt_2 - elapsed * pace
else
if type(stored) == 'table' and not string.match(stored.err, '^WRONGTYPE') then
if not string.match(stored.err, 'non local key') then
error(stored.err)
end
elsewhere = true
end
debt, instant, since, expires, refunds = 0, now, nil, nil, ''
pace, beyond = limit, nil
end` },
  piece1,
  { sections: ['bucket'], source: `if cost > capacity then
return -1
end
local excess = debt - (capacity - cost) * windowMs
if excess <= 0 or cost < (1 < capacity and 1 or capacity) then
return 0
end
local steps = ceil(excess / (pace * stepMs))
return (floor(instant / stepMs) + steps) * stepMs - instant
end
room[1] = function()
return floor((capacity * windowMs - debt) / windowMs)
end
take[1] = function(key, cost)
if debt > capacity * windowMs then
if since and since > now + windowMs then
bucket_rewrite(key)
end
return
end
debt = capacity * windowMs < debt + cost * windowMs and capacity * windowMs or debt + cost * windowMs
pace, beyond = limit, nil` },
  { sections: ['bucket', 'joint'], source: `if joint > 0 then
local bucket_wait_result
local wait
local excess = debt - (capacity - capacity) * windowMs
if excess <= 0 or capacity < (1 < capacity and 1 or capacity) then
wait = 0
else
local steps = ceil(excess / (pace * stepMs))
wait = (floor(instant / stepMs) + steps) * stepMs - instant
end
if wait > 0 then
bucket_wait_result = wait + instant - now
else
bucket_wait_result = wait
end
local state, life = packBytes('>I7I6', debt, instant), bucket_wait_result
put[mine], putRefunds[mine] = state, refunds
puts, putLife = puts + 1, putLife > life and putLife or life
if refunds ~= '' then
tells = true
end
else` },
  { sections: ['bucket'], source: `if since then
if debt == 0 and refunds == '' then
call('DEL', key)
else
local bucket_wait_result
local wait
local excess = debt - (capacity - capacity) * windowMs
if excess <= 0 or capacity < (1 < capacity and 1 or capacity) then
wait = 0
else
local steps = ceil(excess / (pace * stepMs))
wait = (floor(instant / stepMs) + steps) * stepMs - instant
end
if wait > 0 then
bucket_wait_result = wait + instant - now
else
bucket_wait_result = wait
end
local ends = now + (1 > bucket_wait_result and 1 or bucket_wait_result)
if ends <= expires then
local state = packBytes('>I7I6', debt, instant)
if refunds ~= '' then
state = packBytes('>I7I6I6', debt, instant, expires) .. refunds
end
call('SETRANGE', key, '0', state)
else
ends = ends + min(10000, ceil(capacity * windowMs / limit))
call('SET', key, packBytes('>I7I6I6', debt, instant, ends) .. refunds, 'PX', ends - now + slack)
end
end
else
if newDebtOf[own] ~= debt then
local life
local wait
local excess = debt - (capacity - capacity) * windowMs
if excess <= 0 or capacity < (1 < capacity and 1 or capacity) then
wait = 0
else
local steps = ceil(excess / (pace * stepMs))
wait = (floor(instant / stepMs) + steps) * stepMs - instant
end
if wait > 0 then
life = wait + instant - now
else
life = wait
end
newDebtOf[own], newStateOf[own] = debt, packBytes('>I7I6I6', debt, now, now + life)
newLifeOf[own] = format('%d', life + slack)
end
call('SET', key, newStateOf[own], 'PX', newLifeOf[own])
end` },
  piece1,
  { sections: ['bucket'], source: `end
refund[1] = function(key, cost, receipt, chargedAt, _, before)
if not since or debt == 0 then
return
end
local refunded, from = 0, 0
if refunds ~= '' then
refunded, from = unpackBytes('>I7I6', refunds)
end
local written, earlierPace = beyond or debt + (9007199254740991 - bucket_drain(9007199254740991, since < instant and since or instant, instant, limit, stepMs)), pace
if pace ~= limit then
earlierPace = 2 * pace
end
local left, newRefunded, newFrom = bucket_refund(written, debt, refunded, from, instant, cost, receipt, before, chargedAt, earlierPace, windowMs, capacity, stepMs)
if left == written then
return
end
if newRefunded ~= refunded or newFrom ~= from then
refunds = packBytes('>I7I6', newRefunded, newFrom)
end
local at = instant
since = since < at and since or at
debt, instant = left, since
local bucket_paceOf_result
if debt <= 2 * (limit > capacity and limit or capacity) * windowMs then
bucket_paceOf_result = limit
else
bucket_paceOf_result = ceil(debt / (2 * windowMs))
end
pace, beyond = bucket_paceOf_result, nil
if pace ~= limit then
beyond = debt
end
bucket_rewrite(key)
local bucket_atPace_result
if pace == limit then
bucket_atPace_result = debt
else
bucket_atPace_result = pace * 2 * windowMs
end
local bucket_drain_result
local elapsed
if stepMs == 1 then
elapsed = at - since
else
elapsed = floor(at / stepMs) * stepMs - floor(since / stepMs) * stepMs
end
bucket_drain_result = 0 > bucket_atPace_result - elapsed * pace and 0 or bucket_atPace_result - elapsed * pace
debt, instant = bucket_drain_result, at
end` },
  { sections: ['bucket', 'debit'], source: `debit[1] = function(key, cost)
local most = 9007199254740991 < 2 * capacity * windowMs and 9007199254740991 or 2 * capacity * windowMs
if cost * windowMs > most - debt then
refunds = packBytes('>I7', refunds == '' and 0 or unpackBytes('>I7', refunds)) .. packBytes('>I6', 140737488355328 + instant + 1)
end
if debt > most then
local written = beyond or debt + (9007199254740991 - bucket_drain(9007199254740991, since < instant and since or instant, instant, limit, stepMs))
local at = instant
since = since < at and since or at
debt, instant = written, since
local bucket_paceOf_result
if debt <= 2 * (limit > capacity and limit or capacity) * windowMs then
bucket_paceOf_result = limit
else
bucket_paceOf_result = ceil(debt / (2 * windowMs))
end
pace, beyond = bucket_paceOf_result, nil
if pace ~= limit then
beyond = debt
end
bucket_rewrite(key)
local bucket_atPace_result
if pace == limit then
bucket_atPace_result = debt
else
bucket_atPace_result = pace * 2 * windowMs
end
local bucket_drain_result
local elapsed
if stepMs == 1 then
elapsed = at - since
else
elapsed = floor(at / stepMs) * stepMs - floor(since / stepMs) * stepMs
end
bucket_drain_result = 0 > bucket_atPace_result - elapsed * pace and 0 or bucket_atPace_result - elapsed * pace
debt, instant = bucket_drain_result, at
return
end
debt = min(9007199254740991 < 2 * capacity * windowMs and 9007199254740991 or 2 * capacity * windowMs, debt + cost * windowMs)
pace, beyond = limit, nil
if not since then
expires = now
end
since = instant
bucket_rewrite(key)
end` },
  { sections: ['bucket'], source: `heal[1] = function(key)
if since and since > now + windowMs then
bucket_rewrite(key)
end
end
report[1] = function(key, cost, outcome)
local said_2 = outcome
if refunds ~= '' then
said_2 = outcome + 4
end
if beyond then
say(packBytes('>BI7I6', said_2, beyond, since < instant and since or instant) .. refunds)
else
say(packBytes('>BI7I6', said_2, debt, instant) .. refunds)
end
end
end` },
  { sections: ['log'], source: `do
local own, params, limits, limitsAt, most, longestMs
local firstLinger, linger
local widthOf, entryOf, baseOf, headerEndOf = {}, {}, {}, {}
local newLogOf, newLifeOf = {}, {}
local headOf, knownOf, knownCountOf = {}, {}, {}
local base, headerEnd, width, near, entry, modulus, fixed, stride, limitFormat
local header, newest, expires, capacity, oldest, total, tail, instant, whole, moved
local source, chunk, chunkFrom
local stampedAt, stamp = nil, ''
prepare[2] = function(c)
local p = first[c]
if ARGV[p + 1] <= 4294967296 then
widthOf[c], entryOf[c] = 4, '>I4'
else
widthOf[c], entryOf[c] = 6, '>I6'
end
baseOf[c] = 23 + 4 * widthOf[c] + (last[c] - p - 1) / 2 * (7 + 4 * widthOf[c])
headerEndOf[c] = format('%d', baseOf[c] - 1)
newLogOf[c] = nil
end
open[2] = function(c)
own = c
params, limits, limitsAt = first[c], (last[c] - first[c] - 1) / 2, first[c]
most, longestMs = ARGV[params], ARGV[params + 1]
firstLinger = floor(longestMs / 10)
linger = max(firstLinger, 10000 < longestMs and 10000 or longestMs)
base, headerEnd, width, entry = baseOf[c], headerEndOf[c], widthOf[c], entryOf[c]
near = 4 * width
fixed, stride = 23 + near, 7 + near
if width == 4 then
modulus, limitFormat = 4294967296, '>I6BI4'
else
modulus, limitFormat = 281474976710656, '>I6BI6'
end
end` },
  { sections: ['log', 'several'], source: `keep[2] = function(c)
kept1[c], kept2[c], kept3[c], kept4[c], kept5[c] = newest, expires, capacity, oldest, total
kept6[c], kept7[c], kept8[c], kept9[c], kept10[c] = instant, whole, moved, tail, header
end
recall[2] = function(c)
newest, expires, capacity, oldest, total = kept1[c], kept2[c], kept3[c], kept4[c], kept5[c]
instant, whole, moved, tail, header = kept6[c], kept7[c], kept8[c], kept9[c], kept10[c]
end` },
  { sections: ['log'], source: `local function log_read(key, from, to)
local inRing = total - #tail / width
local entries
local count = (to < inRing and to or inRing) - from
if count <= 0 then
entries = ''
else
local slot = from % capacity
local here = count < capacity - slot and count or capacity - slot
local entries_2 = call('GETRANGE', key, base + slot * width, base + (slot + here) * width - 1)
if here < count then
entries_2 = entries_2 .. call('GETRANGE', key, base, base + (count - here) * width - 1)
end
entries = entries_2
end
return entries .. sub(tail, (0 > from - inRing and 0 or from - inRing) * width + 1, (0 > to - inRing and 0 or to - inRing) * width)
end
local function log_rewrite(key, entries, longer)
for l = 1, limits do
local known
local known_2 = knownOf[limitsAt + l]
if not known_2 then
local at = fixed + (l - 1) * stride + 7
known_2 = sub(header, at + 1, at + knownCountOf[limitsAt + l] * width)
knownOf[limitsAt + l] = known_2
end
known = known_2
local head_2 = headOf[limitsAt + l] - oldest
headOf[limitsAt + l], knownOf[limitsAt + l], moved = head_2, known, moved > l and moved or l
end
oldest, total, capacity, tail = 0, total - oldest, 0, entries
if total > 4 then
capacity, tail = max(total, min(most, total + 5 * ceil(total / 20))), ''
end
if longer then
expires = newest + longestMs + longer
end
local value
if moved == 0 then
value = packBytes('>I6I6I4I6Bc0', newest, expires, capacity, total, #tail / width, tail)
else
local known
local known_2 = knownOf[limitsAt + 1]
if not known_2 then
local at = fixed + 0 * stride + 7
known_2 = sub(header, at + 1, at + knownCountOf[limitsAt + 1] * width)
knownOf[limitsAt + 1] = known_2
end
known = known_2
local text = packBytes('>I6I6I4I6Bc0c0I6Bc0c0', newest, expires, capacity, total, #tail / width, tail, rep('\\0', near - #tail), headOf[limitsAt + 1], #known / width, known, rep('\\0', near - #known))
for l = 2, limits do
if l <= moved then
local known_3 = knownOf[limitsAt + l]
if not known_3 then
local at = fixed + (l - 1) * stride + 7
known_3 = sub(header, at + 1, at + knownCountOf[limitsAt + l] * width)
knownOf[limitsAt + l] = known_3
end
known = known_3
text = packBytes('>c0I6Bc0c0', text, headOf[limitsAt + l], #known / width, known, rep('\\0', near - #known))
end
end
value = text
end
if total > 4 then
value = packBytes('c0c0c0', value, entries, rep('\\0', (capacity - total) * width))
end
if longer then
call('SET', key, value, 'PX', expires - now + slack)
else
call('SET', key, value, 'KEEPTTL')
end
end
local function log_advanceAll(key, at)
for l = 1, limits do
source = key
if whole then
chunk, chunkFrom = whole, oldest
else
local log_known_result
local known = knownOf[limitsAt + l]
if not known then
local at_2 = fixed + (l - 1) * stride + 7
known = sub(header, at_2 + 1, at_2 + knownCountOf[limitsAt + l] * width)
knownOf[limitsAt + l] = known
end
log_known_result = known
chunk, chunkFrom = log_known_result, headOf[limitsAt + l]
end
local head_2 = total
if total > oldest and newest > at - ARGV[params + 2 * l + 1] then
local total_2, windowMs = total, ARGV[params + 2 * l + 1]
local low, high, step = oldest, total_2, 1
while low < high do
local probe = low + step - 1
if step == 0 or probe >= high then
probe, step = floor((low + high) / 2), 0
end
local log_entry_result
local beyond = probe - chunkFrom - #chunk / width
if probe < chunkFrom or beyond >= 16 then
chunk, chunkFrom, beyond = '', probe, 0
end
if beyond >= 0 then
local log_read_result
local from, to = probe - beyond, total < probe + 16 and total or probe + 16
local inRing = total - #tail / width
local entries
local count = (to < inRing and to or inRing) - from
if count <= 0 then
entries = ''
else
local slot = from % capacity
local here = count < capacity - slot and count or capacity - slot
local entries_2 = call('GETRANGE', source, base + slot * width, base + (slot + here) * width - 1)
if here < count then
entries_2 = entries_2 .. call('GETRANGE', source, base, base + (count - here) * width - 1)
end
entries = entries_2
end
log_read_result = entries .. sub(tail, (0 > from - inRing and 0 or from - inRing) * width + 1, (0 > to - inRing and 0 or to - inRing) * width)
chunk = chunk .. log_read_result
end
log_entry_result = newest - (newest - unpackBytes(entry, chunk, (probe - chunkFrom) * width + 1)) % modulus
if log_entry_result > at - windowMs then
high, step = probe, 0
else
low, step = probe + 1, step * 2
end
end
head_2 = low
end
local skip = (head_2 - chunkFrom) * width
local known = sub(chunk, skip + 1, skip + near)
headOf[limitsAt + l], knownOf[limitsAt + l], moved = head_2, known, moved > l and moved or l
end
end
look[2] = function(key, cost)
header, whole, moved = tryCall('GETRANGE', key, '0', headerEnd), nil, 0
local unwritten
if #header < base then
if type(header) == 'table' and not string.match(header.err, '^WRONGTYPE') then
if not string.match(header.err, 'non local key') then
error(header.err)
end
elsewhere = true
end
expires = nil
else
newest, expires, capacity, total, unwritten = unpackBytes('>I6I6I4I6B', header)
local spare = expires - newest - longestMs
if spare < 0 or spare > linger then
expires = nil
end
end
if not expires then
newest, oldest, total, tail, instant = nil, 0, 0, '', now
for l = 1, limits do
headOf[limitsAt + l], knownOf[limitsAt + l] = 0, ''
end
else
tail = sub(header, 24, 23 + unwritten * width)
if newest > now and newest <= now + longestMs then
instant = newest
else
instant = now
end
oldest = total
local at = fixed + 1
for l = 1, limits do
local head_2, known, low = unpackBytes(limitFormat, header, at)
headOf[limitsAt + l], knownOf[limitsAt + l], knownCountOf[limitsAt + l] = head_2, nil, known
at = at + stride
oldest = oldest < head_2 and oldest or head_2
if known == 0 or newest - (newest - low) % modulus <= instant - ARGV[params + 2 * l + 1] then
source = key
if whole then
chunk, chunkFrom = whole, oldest
else
local log_known_result
local known_2 = knownOf[limitsAt + l]
if not known_2 then
local at_2 = fixed + (l - 1) * stride + 7
known_2 = sub(header, at_2 + 1, at_2 + knownCountOf[limitsAt + l] * width)
knownOf[limitsAt + l] = known_2
end
log_known_result = known_2
chunk, chunkFrom = log_known_result, headOf[limitsAt + l]
end
local head_3 = total
if total > oldest and newest > instant - ARGV[params + 2 * l + 1] then
local total_2, windowMs = total, ARGV[params + 2 * l + 1]
local low_2, high, step = head_2, total_2, 1
while low_2 < high do
local probe = low_2 + step - 1
if step == 0 or probe >= high then
probe, step = floor((low_2 + high) / 2), 0
end
local log_entry_result
local beyond = probe - chunkFrom - #chunk / width
if probe < chunkFrom or beyond >= 16 then
chunk, chunkFrom, beyond = '', probe, 0
end
if beyond >= 0 then
local log_read_result
local from, to = probe - beyond, total < probe + 16 and total or probe + 16
local inRing = total - #tail / width
local entries
local count = (to < inRing and to or inRing) - from
if count <= 0 then
entries = ''
else
local slot = from % capacity
local here = count < capacity - slot and count or capacity - slot
local entries_2 = call('GETRANGE', source, base + slot * width, base + (slot + here) * width - 1)
if here < count then
entries_2 = entries_2 .. call('GETRANGE', source, base, base + (count - here) * width - 1)
end
entries = entries_2
end
log_read_result = entries .. sub(tail, (0 > from - inRing and 0 or from - inRing) * width + 1, (0 > to - inRing and 0 or to - inRing) * width)
chunk = chunk .. log_read_result
end
log_entry_result = newest - (newest - unpackBytes(entry, chunk, (probe - chunkFrom) * width + 1)) % modulus
if log_entry_result > instant - windowMs then
high, step = probe, 0
else
low_2, step = probe + 1, step * 2
end
end
head_3 = low_2
end
local skip = (head_3 - chunkFrom) * width
local known_2 = sub(chunk, skip + 1, skip + near)
headOf[limitsAt + l], knownOf[limitsAt + l], moved = head_3, known_2, moved > l and moved or l
end
end
if newest > now + longestMs then
newest = now
local entries = rep(packBytes(entry, now % modulus), total - oldest)
whole, oldest, total = entries, 0, #entries / width
newest = total > 0 and newest - (newest - unpackBytes(entry, entries, (total - 1) * width + 1)) % modulus or nil
log_advanceAll(key, instant)
end
end
local wait = 0
for l = 1, limits do
if cost > ARGV[params + 2 * l] then
wait = -1
end
if wait == 0 and cost > 0 and total - headOf[limitsAt + l] + cost > ARGV[params + 2 * l] then
wait = 1
end
end
return wait
end
room[2] = function()
local units = most
for l = 1, limits do
local taken = total - (headOf[limitsAt + l] or total)
units = units < ARGV[params + 2 * l] - taken and units or ARGV[params + 2 * l] - taken
end
return units
end
take[2] = function(key, cost)
if instant ~= stampedAt or #stamp ~= width then
stamp, stampedAt = packBytes(entry, instant % modulus), instant
end
if cost == 1 and not expires then
local fresh = newLogOf[own]
if not fresh then
local gap = rep('\\0', near - width)
fresh = packBytes('>I6I6I4I6Bc0c0', now, now + longestMs + firstLinger, 0, 1, 1, stamp, gap)
for _ = 1, limits do
fresh = packBytes('>c0I6Bc0c0', fresh, 0, 1, stamp, gap)
end
newLogOf[own], newLifeOf[own] = fresh, format('%d', longestMs + firstLinger + slack)
end
call('SET', key, fresh, 'PX', newLifeOf[own])
for l = 1, limits do
headOf[limitsAt + l], knownOf[limitsAt + l] = 0, stamp
end
oldest, total, newest, tail = 0, 1, now, stamp
return
end
local added = stamp
if cost > 1 then
added = rep(added, cost)
end
local kept, least = total, 0
if total + cost - oldest > most then
for l = 1, limits do
kept = kept < headOf[limitsAt + l] and kept or headOf[limitsAt + l]
end
least = (kept < total - most and kept or total - most) + cost
kept = total
end
for l = 1, limits do
local was, known = headOf[limitsAt + l], knownCountOf[limitsAt + l]
if knownOf[limitsAt + l] then
known = #knownOf[limitsAt + l] / width
end
local head_2 = was > least and was or least
if head_2 > was or known < 4 then
local log_known_result
local known_2 = knownOf[limitsAt + l]
if not known_2 then
local at = fixed + (l - 1) * stride + 7
known_2 = sub(header, at + 1, at + knownCountOf[limitsAt + l] * width)
knownOf[limitsAt + l] = known_2
end
log_known_result = known_2
local ahead = sub(log_known_result, (head_2 - was) * width + 1)
if head_2 + #ahead / width == total then
ahead = sub(ahead .. added, 1, near)
end
headOf[limitsAt + l], knownOf[limitsAt + l], moved = head_2, ahead, moved > l and moved or l
end
kept = kept < head_2 and kept or head_2
end
if kept > oldest then
local lapsed = kept - (total - #tail / width)
if lapsed > 0 then
tail = sub(tail, lapsed * width + 1)
end
end
if expires and not whole then
oldest = kept
local added_2 = added
tail, total, newest = tail .. added_2, total + cost, instant
local ends, count = newest + longestMs, total - oldest
local isLate = ends > expires
if #tail > near and count > capacity or isLate and 4 * count < capacity then
local log_read_result
local inRing = total - #tail / width
local entries
local count_2 = (total < inRing and total or inRing) - oldest
if count_2 <= 0 then
entries = ''
else
local slot = oldest % capacity
local here = count_2 < capacity - slot and count_2 or capacity - slot
local entries_2 = call('GETRANGE', key, base + slot * width, base + (slot + here) * width - 1)
if here < count_2 then
entries_2 = entries_2 .. call('GETRANGE', key, base, base + (count_2 - here) * width - 1)
end
entries = entries_2
end
log_read_result = entries .. sub(tail, (0 > oldest - inRing and 0 or oldest - inRing) * width + 1, (0 > total - inRing and 0 or total - inRing) * width)
log_rewrite(key, log_read_result, isLate and linger)
else
if #tail > near then
local from = total - #tail / width
local slot = from % capacity
local here = (capacity - slot) * width
call('SETRANGE', key, base + slot * width, sub(tail, 1, here))
if #tail > here then
call('SETRANGE', key, base, sub(tail, here + 1))
end
tail = ''
end
if isLate then
expires = ends + linger
call('PEXPIRE', key, expires - now + slack)
end
local log_header_result
if moved == 0 then
log_header_result = packBytes('>I6I6I4I6Bc0', newest, expires, capacity, total, #tail / width, tail)
else
local known
local known_2 = knownOf[limitsAt + 1]
if not known_2 then
local at = fixed + 0 * stride + 7
known_2 = sub(header, at + 1, at + knownCountOf[limitsAt + 1] * width)
knownOf[limitsAt + 1] = known_2
end
known = known_2
local text = packBytes('>I6I6I4I6Bc0c0I6Bc0c0', newest, expires, capacity, total, #tail / width, tail, rep('\\0', near - #tail), headOf[limitsAt + 1], #known / width, known, rep('\\0', near - #known))
for l = 2, limits do
if l <= moved then
local known_3 = knownOf[limitsAt + l]
if not known_3 then
local at = fixed + (l - 1) * stride + 7
known_3 = sub(header, at + 1, at + knownCountOf[limitsAt + l] * width)
knownOf[limitsAt + l] = known_3
end
known = known_3
text = packBytes('>c0I6Bc0c0', text, headOf[limitsAt + l], #known / width, known, rep('\\0', near - #known))
end
end
log_header_result = text
end
call('SETRANGE', key, '0', log_header_result)
end
return
end
oldest, total, newest = kept, total + cost, instant
log_rewrite(key, whole and sub(whole, kept * width + 1) .. added or added, firstLinger)
end
refund[2] = function(key, cost, receipt)
local entries = whole or log_read(key, oldest, total)
local after_2 = #entries / width
while after_2 > 0 and newest - (newest - unpackBytes(entry, entries, (after_2 - 1) * width + 1)) % modulus > receipt do
after_2 = after_2 - 1
end
local from = after_2
while from > 0 and after_2 - from < cost and newest - (newest - unpackBytes(entry, entries, (from - 1) * width + 1)) % modulus == receipt do
from = from - 1
end
if from == after_2 then
return
end
local entries_2 = sub(entries, 1, from * width) .. sub(entries, after_2 * width + 1)
whole, oldest, total = entries_2, 0, #entries_2 / width
newest = total > 0 and newest - (newest - unpackBytes(entry, entries_2, (total - 1) * width + 1)) % modulus or nil
log_advanceAll(key, instant)
if total == 0 or newest + longestMs + slack <= now then
call('DEL', key)
else
log_advanceAll(key, newest)
log_rewrite(key, whole, 0)
log_advanceAll(key, instant)
end
end` },
  { sections: ['log', 'debit'], source: `debit[2] = function(key, cost)
local cost_2 = cost < most and cost or most
if instant ~= stampedAt or #stamp ~= width then
stamp, stampedAt = packBytes(entry, instant % modulus), instant
end
if cost_2 == 1 and not expires then
local fresh = newLogOf[own]
if not fresh then
local gap = rep('\\0', near - width)
fresh = packBytes('>I6I6I4I6Bc0c0', now, now + longestMs + firstLinger, 0, 1, 1, stamp, gap)
for _ = 1, limits do
fresh = packBytes('>c0I6Bc0c0', fresh, 0, 1, stamp, gap)
end
newLogOf[own], newLifeOf[own] = fresh, format('%d', longestMs + firstLinger + slack)
end
call('SET', key, fresh, 'PX', newLifeOf[own])
for l = 1, limits do
headOf[limitsAt + l], knownOf[limitsAt + l] = 0, stamp
end
oldest, total, newest, tail = 0, 1, now, stamp
else
local added = stamp
if cost_2 > 1 then
added = rep(added, cost_2)
end
local kept, least = total, 0
if total + cost_2 - oldest > most then
for l = 1, limits do
kept = kept < headOf[limitsAt + l] and kept or headOf[limitsAt + l]
end
least = (kept < total - most and kept or total - most) + cost_2
kept = total
end
for l = 1, limits do
local was, known = headOf[limitsAt + l], knownCountOf[limitsAt + l]
if knownOf[limitsAt + l] then
known = #knownOf[limitsAt + l] / width
end
local head_2 = was > least and was or least
if head_2 > was or known < 4 then
local log_known_result
local known_2 = knownOf[limitsAt + l]
if not known_2 then
local at = fixed + (l - 1) * stride + 7
known_2 = sub(header, at + 1, at + knownCountOf[limitsAt + l] * width)
knownOf[limitsAt + l] = known_2
end
log_known_result = known_2
local ahead = sub(log_known_result, (head_2 - was) * width + 1)
if head_2 + #ahead / width == total then
ahead = sub(ahead .. added, 1, near)
end
headOf[limitsAt + l], knownOf[limitsAt + l], moved = head_2, ahead, moved > l and moved or l
end
kept = kept < head_2 and kept or head_2
end
if kept > oldest then
local lapsed = kept - (total - #tail / width)
if lapsed > 0 then
tail = sub(tail, lapsed * width + 1)
end
end
if expires and not whole then
oldest = kept
local added_2 = added
tail, total, newest = tail .. added_2, total + cost_2, instant
local ends, count = newest + longestMs, total - oldest
local isLate = ends > expires
if #tail > near and count > capacity or isLate and 4 * count < capacity then
local log_read_result
local inRing = total - #tail / width
local entries
local count_2 = (total < inRing and total or inRing) - oldest
if count_2 <= 0 then
entries = ''
else
local slot = oldest % capacity
local here = count_2 < capacity - slot and count_2 or capacity - slot
local entries_2 = call('GETRANGE', key, base + slot * width, base + (slot + here) * width - 1)
if here < count_2 then
entries_2 = entries_2 .. call('GETRANGE', key, base, base + (count_2 - here) * width - 1)
end
entries = entries_2
end
log_read_result = entries .. sub(tail, (0 > oldest - inRing and 0 or oldest - inRing) * width + 1, (0 > total - inRing and 0 or total - inRing) * width)
log_rewrite(key, log_read_result, isLate and linger)
else
if #tail > near then
local from = total - #tail / width
local slot = from % capacity
local here = (capacity - slot) * width
call('SETRANGE', key, base + slot * width, sub(tail, 1, here))
if #tail > here then
call('SETRANGE', key, base, sub(tail, here + 1))
end
tail = ''
end
if isLate then
expires = ends + linger
call('PEXPIRE', key, expires - now + slack)
end
local log_header_result
if moved == 0 then
log_header_result = packBytes('>I6I6I4I6Bc0', newest, expires, capacity, total, #tail / width, tail)
else
local known
local known_2 = knownOf[limitsAt + 1]
if not known_2 then
local at = fixed + 0 * stride + 7
known_2 = sub(header, at + 1, at + knownCountOf[limitsAt + 1] * width)
knownOf[limitsAt + 1] = known_2
end
known = known_2
local text = packBytes('>I6I6I4I6Bc0c0I6Bc0c0', newest, expires, capacity, total, #tail / width, tail, rep('\\0', near - #tail), headOf[limitsAt + 1], #known / width, known, rep('\\0', near - #known))
for l = 2, limits do
if l <= moved then
local known_3 = knownOf[limitsAt + l]
if not known_3 then
local at = fixed + (l - 1) * stride + 7
known_3 = sub(header, at + 1, at + knownCountOf[limitsAt + l] * width)
knownOf[limitsAt + l] = known_3
end
known = known_3
text = packBytes('>c0I6Bc0c0', text, headOf[limitsAt + l], #known / width, known, rep('\\0', near - #known))
end
end
log_header_result = text
end
call('SETRANGE', key, '0', log_header_result)
end
else
oldest, total, newest = kept, total + cost_2, instant
log_rewrite(key, whole and sub(whole, kept * width + 1) .. added or added, firstLinger)
end
end
end` },
  { sections: ['log'], source: `heal[2] = function(key)
if whole then
if total == 0 or newest + longestMs + slack <= now then
call('DEL', key)
else
log_advanceAll(key, newest)
log_rewrite(key, whole, 0)
log_advanceAll(key, instant)
end
end
end
report[2] = function(key, cost, outcome)
local latest = newest and newest + 1 or 0
if outcome == 1 then
say(packBytes('>BI6I6I4', outcome, instant, latest, total - (headOf[limitsAt + 1] or total)))
for l = 2, limits, 3 do
local counts = packBytes('>I4I4I4', total - (headOf[limitsAt + l] or total), total - (headOf[limitsAt + (l + 1)] or total), total - (headOf[limitsAt + (l + 2)] or total))
if limits < l + 2 then
counts = sub(counts, 1, (limits - l + 1) * 4)
end
say(counts)
end
return
end
say(packBytes('>BI6I6', outcome, instant, latest))
for l = 1, limits do
source = key
if whole then
chunk, chunkFrom = whole, oldest
else
local log_known_result
local known = knownOf[limitsAt + l]
if not known then
local at = fixed + (l - 1) * stride + 7
known = sub(header, at + 1, at + knownCountOf[limitsAt + l] * width)
knownOf[limitsAt + l] = known
end
log_known_result = known
chunk, chunkFrom = log_known_result, headOf[limitsAt + l]
end
local fewer = -1
local head_2 = headOf[limitsAt + l] > total - ARGV[params + 2 * l] and headOf[limitsAt + l] or total - ARGV[params + 2 * l]
if head_2 < total then
local log_entry_result
local beyond = head_2 - chunkFrom - #chunk / width
if head_2 < chunkFrom or beyond >= 16 then
chunk, chunkFrom, beyond = '', head_2, 0
end
if beyond >= 0 then
local log_read_result
local from, to = head_2 - beyond, total < head_2 + 16 and total or head_2 + 16
local inRing = total - #tail / width
local entries
local count = (to < inRing and to or inRing) - from
if count <= 0 then
entries = ''
else
local slot = from % capacity
local here = count < capacity - slot and count or capacity - slot
local entries_2 = call('GETRANGE', source, base + slot * width, base + (slot + here) * width - 1)
if here < count then
entries_2 = entries_2 .. call('GETRANGE', source, base, base + (count - here) * width - 1)
end
entries = entries_2
end
log_read_result = entries .. sub(tail, (0 > from - inRing and 0 or from - inRing) * width + 1, (0 > to - inRing and 0 or to - inRing) * width)
chunk = chunk .. log_read_result
end
log_entry_result = newest - (newest - unpackBytes(entry, chunk, (head_2 - chunkFrom) * width + 1)) % modulus
fewer = log_entry_result + ARGV[params + 2 * l + 1] - now
end
local wait
local total_2, live, at, limit, windowMs = total, total - headOf[limitsAt + l], instant, ARGV[params + 2 * l], ARGV[params + 2 * l + 1]
if cost > limit then
wait = -1
else
if live + cost <= limit or cost == 0 then
wait = 0
else
local log_entry_result
local i = total_2 - (limit - cost + 1)
local beyond = i - chunkFrom - #chunk / width
if i < chunkFrom or beyond >= 16 then
chunk, chunkFrom, beyond = '', i, 0
end
if beyond >= 0 then
local log_read_result
local from, to = i - beyond, total < i + 16 and total or i + 16
local inRing = total - #tail / width
local entries
local count = (to < inRing and to or inRing) - from
if count <= 0 then
entries = ''
else
local slot = from % capacity
local here = count < capacity - slot and count or capacity - slot
local entries_2 = call('GETRANGE', source, base + slot * width, base + (slot + here) * width - 1)
if here < count then
entries_2 = entries_2 .. call('GETRANGE', source, base, base + (count - here) * width - 1)
end
entries = entries_2
end
log_read_result = entries .. sub(tail, (0 > from - inRing and 0 or from - inRing) * width + 1, (0 > to - inRing and 0 or to - inRing) * width)
chunk = chunk .. log_read_result
end
log_entry_result = newest - (newest - unpackBytes(entry, chunk, (i - chunkFrom) * width + 1)) % modulus
wait = log_entry_result + windowMs - at
end
end
if wait > 0 then
wait = wait + instant - now
end
say(packBytes('>I4I7I7', total - (headOf[limitsAt + l] or total), wait + 1, fewer + 1))
end
end
end` },
  { sections: ['segments'], source: `do
local limit, windowMs, segments, edge, segmentMs, width, counter
local withRefusals, most
local widthOf, counterOf, mostOf = {}, {}, {}
local counts, total, segment, offset, instant, newest
prepare[3] = function(c)
local p = first[c]
local bytes_2, top, limit_2, isWide = 1, 256, ARGV[p], ARGV[p + 3] >= 8
if isWide then
bytes_2 = limit_2 > 2147483647 and 7 or 4
end
if ARGV[p + 3] >= 4 then
limit_2 = max(limit_2, min(2147483647, floor(9007199254740991 / ARGV[p + 1])))
end
while not isWide and top <= limit_2 do
bytes_2 = bytes_2 + 1
top = top * 256
end
widthOf[c], counterOf[c], mostOf[c] = bytes_2, '>I' .. bytes_2, limit_2
end
open[3] = function(c)
local p = first[c]
limit, windowMs, segments, edge = ARGV[p], ARGV[p + 1], ARGV[p + 2], ARGV[p + 3]
segmentMs, width, counter, most = windowMs / segments, widthOf[c], counterOf[c], mostOf[c]
if edge >= 8 then
edge = edge - 8
end
withRefusals = edge >= 4
if withRefusals then
edge = edge - 4
end
end` },
  { sections: ['segments', 'several'], source: `keep[3] = function(c)
kept1[c], kept2[c], kept3[c], kept4[c], kept5[c], kept6[c] = counts, total, segment, offset, instant, newest
end
recall[3] = function(c)
counts, total, segment, offset, instant, newest = kept1[c], kept2[c], kept3[c], kept4[c], kept5[c], kept6[c]
end` },
  { sections: ['segments', 'joint'], source: `size[3] = function(c)
return 6 + (ARGV[first[c] + 2] + 2) * widthOf[c]
end` },
  { sections: ['segments'], source: `local function segments_write(key)` },
  { sections: ['segments', 'joint'], source: `if joint > 0 then
local state, life = packBytes('>I6', segment) .. packBytes(counter, total) .. counts, windowMs + segmentMs - offset + instant - now
local segments_reset_result
local reset
local reset_2 = 0
for k = 0, segments do
local count = (unpackBytes(counter, counts, k * width + 1))
if count > 0 then
local window_offsetFor_result
if edge == 1 or count <= 0 then
window_offsetFor_result = 0
else
if edge == 0 then
window_offsetFor_result = segmentMs
else
if edge == 2 then
window_offsetFor_result = floor(segmentMs * (count - 1) / count) + 1
else
window_offsetFor_result = ceil(segmentMs * (count - 0) / count)
end
end
end
reset_2 = 0 > (segments - k) * segmentMs + window_offsetFor_result - offset and 0 or (segments - k) * segmentMs + window_offsetFor_result - offset
break
end
end
reset = reset_2
if reset > 0 then
segments_reset_result = reset + instant - now
else
segments_reset_result = 0
end
if segments_reset_result == 0 then
state, life = rep('\\0', bytes[mine]), 0
end
put[mine], putRefunds[mine] = state, ''
puts, putLife = puts + 1, putLife > life and putLife or life
if '' ~= '' then
tells = true
end
else` },
  { sections: ['segments'], source: `local segments_reset_result
local reset
local reset_2 = 0
for k = 0, segments do
local count = (unpackBytes(counter, counts, k * width + 1))
if count > 0 then
local window_offsetFor_result
if edge == 1 or count <= 0 then
window_offsetFor_result = 0
else
if edge == 0 then
window_offsetFor_result = segmentMs
else
if edge == 2 then
window_offsetFor_result = floor(segmentMs * (count - 1) / count) + 1
else
window_offsetFor_result = ceil(segmentMs * (count - 0) / count)
end
end
end
reset_2 = 0 > (segments - k) * segmentMs + window_offsetFor_result - offset and 0 or (segments - k) * segmentMs + window_offsetFor_result - offset
break
end
end
reset = reset_2
if reset > 0 then
segments_reset_result = reset + instant - now
else
segments_reset_result = 0
end
if segments_reset_result > 0 then
call('SET', key, packBytes('>I6', segment) .. packBytes(counter, total) .. counts, 'PX', windowMs + segmentMs - offset + instant - now + slack)
elseif newest then
call('DEL', key)
end` },
  piece2,
  { sections: ['segments'], source: `end
look[3] = function(key, cost)
local stored
local at = 1` },
  { sections: ['segments', 'joint'], source: `if joint > 0 then
stored, at = storedOf[joint], after[mine] + 1
else` },
  { sections: ['segments'], source: `stored = tryCall('GET', key)
if stored and #stored ~= 6 + (segments + 2) * width then
if type(stored) == 'table' and not string.match(stored.err, '^WRONGTYPE') then
if not string.match(stored.err, 'non local key') then
error(stored.err)
end
elsewhere = true
end
stored = false
end` },
  piece2,
  { sections: ['segments'], source: `newest, instant = nil, now
if stored then
newest = unpackBytes('>I6', stored, at)
local at_2 = newest * segmentMs
if at_2 > now and at_2 <= now + windowMs then
instant = at_2
else
instant = now
end
end
segment = floor(instant / segmentMs)
offset = instant - segment * segmentMs
local by = stored and (0 > segment - newest and 0 or segment - newest) or segments + 1
if by > segments then
total, counts = 0, rep('\\0', (segments + 1) * width)
else
total, counts = unpackBytes(counter, stored, at + 6), sub(stored, at + 6 + width, at + 5 + (segments + 2) * width)
if by > 0 then
local window_leaving_result
local units = 0
for k = 0 > segments - by and 0 or segments - by, segments - 1 do
units = units + (unpackBytes(counter, counts, k * width + 1))
end
window_leaving_result = units
total = total - window_leaving_result
counts = rep('\\0', by * width) .. sub(counts, 1, (segments + 1 - by) * width)
end
end
if newest and newest * segmentMs > now + windowMs then
if edge < 2 then
else
local units = (unpackBytes(counter, counts, segments * width + 1))
counts = sub(counts, 1, segments * width) .. rep('\\0', width)
local k, units_2 = segments - 1, max(0, units < most - total and units or most - total)
local count = packBytes(counter, (unpackBytes(counter, counts, k * width + 1)) + units_2)
counts = sub(counts, 1, k * width) .. count .. sub(counts, (k + 1) * width + 1)
if k < segments then
total = total + units_2
end
end
end
local wait
if cost > limit then
wait = -1
else
if cost == 0 then
wait = 0
else
local inside, wait_2 = total, (segments + 1) * segmentMs - offset
for by_2 = 0, segments do
if by_2 > 0 then
inside = inside - (unpackBytes(counter, counts, (segments - by_2) * width + 1))
end
if inside + cost <= limit then
local count = (unpackBytes(counter, counts, (segments - by_2) * width + 1))
local from
local room_2 = limit - cost - inside
if edge == 1 or count <= room_2 then
from = 0
else
if edge == 0 then
from = segmentMs
else
if edge == 2 then
from = floor(segmentMs * (count - room_2 - 1) / count) + 1
else
from = ceil(segmentMs * (count - room_2) / count)
end
end
end
if from < segmentMs then
wait_2 = 0 > by_2 * segmentMs + from - offset and 0 or by_2 * segmentMs + from - offset
break
end
end
end
wait = wait_2
end
end
if wait > 0 then
return wait + instant - now
end
return wait
end
take[3] = function(key, cost)
local room_2
if withRefusals then
room_2 = 0 > most - total and 0 or most - total
else
local window_edgeUnits_result
local count = (unpackBytes(counter, counts, segments * width + 1))
if edge == 0 then
window_edgeUnits_result = count
else
if edge == 1 then
window_edgeUnits_result = 0
else
local share = count * (segmentMs - offset) / segmentMs
if edge == 2 then
window_edgeUnits_result = floor(share)
else
window_edgeUnits_result = ceil(share)
end
end
end
room_2 = 0 > limit - total - window_edgeUnits_result and 0 or limit - total - window_edgeUnits_result
end
local units = cost < room_2 and cost or room_2
local count = packBytes(counter, (unpackBytes(counter, counts, 0 * width + 1)) + units)
counts = sub(counts, 1, 0 * width) .. count .. sub(counts, 1 * width + 1)
if 0 < segments then
total = total + units
end
local isNewest = newest == segment` },
  { sections: ['segments', 'joint'], source: `isNewest = isNewest and joint == 0` },
  { sections: ['segments'], source: `if isNewest then
call('SETRANGE', key, '6', packBytes(counter, total) .. sub(counts, 1, width))
else
segments_write(key)
end
end
refund[3] = function(key, cost, receipt)
local k = segment - receipt
if not newest or k < 0 or k > segments then
return
end
local units = -min(cost, (unpackBytes(counter, counts, k * width + 1)))
local count = packBytes(counter, (unpackBytes(counter, counts, k * width + 1)) + units)
counts = sub(counts, 1, k * width) .. count .. sub(counts, (k + 1) * width + 1)
if k < segments then
total = total + units
end
segments_write(key)
end` },
  { sections: ['segments', 'debit'], source: `debit[3] = function(key, cost)
local usual = withRefusals
withRefusals = true
local room_2
if withRefusals then
room_2 = 0 > most - total and 0 or most - total
else
local window_edgeUnits_result
local count = (unpackBytes(counter, counts, segments * width + 1))
if edge == 0 then
window_edgeUnits_result = count
else
if edge == 1 then
window_edgeUnits_result = 0
else
local share = count * (segmentMs - offset) / segmentMs
if edge == 2 then
window_edgeUnits_result = floor(share)
else
window_edgeUnits_result = ceil(share)
end
end
end
room_2 = 0 > limit - total - window_edgeUnits_result and 0 or limit - total - window_edgeUnits_result
end
local units = cost < room_2 and cost or room_2
local count = packBytes(counter, (unpackBytes(counter, counts, 0 * width + 1)) + units)
counts = sub(counts, 1, 0 * width) .. count .. sub(counts, 1 * width + 1)
if 0 < segments then
total = total + units
end
local isNewest = newest == segment` },
  { sections: ['segments', 'debit', 'joint'], source: `isNewest = isNewest and joint == 0` },
  { sections: ['segments', 'debit'], source: `if isNewest then
call('SETRANGE', key, '6', packBytes(counter, total) .. sub(counts, 1, width))
else
segments_write(key)
end
withRefusals = usual
end` },
  { sections: ['segments'], source: `heal[3] = function(key)
if newest and newest * segmentMs > now + windowMs then
segments_write(key)
end
end
report[3] = function(key, cost, outcome)
local window_edgeUnits_result
local count = (unpackBytes(counter, counts, segments * width + 1))
if edge == 0 then
window_edgeUnits_result = count
else
if edge == 1 then
window_edgeUnits_result = 0
else
local share = count * (segmentMs - offset) / segmentMs
if edge == 2 then
window_edgeUnits_result = floor(share)
else
window_edgeUnits_result = ceil(share)
end
end
end
local room_2 = 0 > limit - total - window_edgeUnits_result and 0 or limit - total - window_edgeUnits_result
local segments_reset_result
local reset
local reset_2 = 0
for k = 0, segments do
local count_2 = (unpackBytes(counter, counts, k * width + 1))
if count_2 > 0 then
local window_offsetFor_result
if edge == 1 or count_2 <= 0 then
window_offsetFor_result = 0
else
if edge == 0 then
window_offsetFor_result = segmentMs
else
if edge == 2 then
window_offsetFor_result = floor(segmentMs * (count_2 - 1) / count_2) + 1
else
window_offsetFor_result = ceil(segmentMs * (count_2 - 0) / count_2)
end
end
end
reset_2 = 0 > (segments - k) * segmentMs + window_offsetFor_result - offset and 0 or (segments - k) * segmentMs + window_offsetFor_result - offset
break
end
end
reset = reset_2
if reset > 0 then
segments_reset_result = reset + instant - now
else
segments_reset_result = 0
end
say(packBytes('>BI7I7I6', outcome, room_2, segments_reset_result, segment))
if outcome == 0 then
local segments_wait_result
local wait
if cost > limit then
wait = -1
else
if cost == 0 then
wait = 0
else
local inside, wait_2 = total, (segments + 1) * segmentMs - offset
for by = 0, segments do
if by > 0 then
inside = inside - (unpackBytes(counter, counts, (segments - by) * width + 1))
end
if inside + cost <= limit then
local count_2 = (unpackBytes(counter, counts, (segments - by) * width + 1))
local from
local room_3 = limit - cost - inside
if edge == 1 or count_2 <= room_3 then
from = 0
else
if edge == 0 then
from = segmentMs
else
if edge == 2 then
from = floor(segmentMs * (count_2 - room_3 - 1) / count_2) + 1
else
from = ceil(segmentMs * (count_2 - room_3) / count_2)
end
end
end
if from < segmentMs then
wait_2 = 0 > by * segmentMs + from - offset and 0 or by * segmentMs + from - offset
break
end
end
end
wait = wait_2
end
end
if wait > 0 then
segments_wait_result = wait + instant - now
else
segments_wait_result = wait
end
local segments_wait_result_2
local cost_2 = room_2 + 1
local wait_2
if cost_2 > limit then
wait_2 = -1
else
if cost_2 == 0 then
wait_2 = 0
else
local inside, wait_3 = total, (segments + 1) * segmentMs - offset
for by = 0, segments do
if by > 0 then
inside = inside - (unpackBytes(counter, counts, (segments - by) * width + 1))
end
if inside + cost_2 <= limit then
local count_2 = (unpackBytes(counter, counts, (segments - by) * width + 1))
local from
local room_3 = limit - cost_2 - inside
if edge == 1 or count_2 <= room_3 then
from = 0
else
if edge == 0 then
from = segmentMs
else
if edge == 2 then
from = floor(segmentMs * (count_2 - room_3 - 1) / count_2) + 1
else
from = ceil(segmentMs * (count_2 - room_3) / count_2)
end
end
end
if from < segmentMs then
wait_3 = 0 > by * segmentMs + from - offset and 0 or by * segmentMs + from - offset
break
end
end
end
wait_2 = wait_3
end
end
if wait_2 > 0 then
segments_wait_result_2 = wait_2 + instant - now
else
segments_wait_result_2 = wait_2
end
say(packBytes('>I7I7', segments_wait_result + 1, segments_wait_result_2 + 1))
end
end
end` },
  { sections: ['counter'], source: `do` },
  { sections: ['counter'], source: `local own, limit, windowMs, byClock
local most` },
  { sections: ['counter', 'calendar'], source: `local firstBound, lastBound` },
  { sections: ['counter'], source: `local newCountOf, newStateOf, newLifeOf = {}, {}, {}
local count, start, since
prepare[4] = function(c)
newCountOf[c] = nil
end
open[4] = function(c)
local p = first[c]
own = c
limit, windowMs, byClock = ARGV[p], ARGV[p + 1], ARGV[p + 3] == 1
most = limit
if ARGV[p + 2] == 1 then
most = max(limit, min(2147483647, floor(9007199254740991 / windowMs)))
end` },
  { sections: ['counter', 'calendar'], source: `firstBound, lastBound = p + 4, last[c]` },
  piece3,
  { sections: ['counter', 'several'], source: `keep[4] = function(c)
kept1[c], kept2[c], kept3[c] = count, start, since
end
recall[4] = function(c)
count, start, since = kept1[c], kept2[c], kept3[c]
end` },
  { sections: ['counter', 'joint'], source: `size[4] = function()
return 13
end` },
  { sections: ['counter'], source: `look[4] = function(key, cost)
local instant, isOver = now, true
since = nil` },
  { sections: ['counter', 'joint'], source: `if joint > 0 then
count = 0
if storedOf[joint] then
count, since = unpackBytes('>I7I6', storedOf[joint], after[mine] + 1)
end
if count == 0 then
since = nil
end
else` },
  { sections: ['counter'], source: `local stored = tryCall('GET', key)
if stored and #stored == 13 then
count, since = unpackBytes('>I7I6', stored)
else
if type(stored) == 'table' and not string.match(stored.err, '^WRONGTYPE') then
if not string.match(stored.err, 'non local key') then
error(stored.err)
end
elsewhere = true
end
end` },
  piece4,
  { sections: ['counter'], source: `if since then
if since > now and since <= now + windowMs then
instant = since
else
instant = now
end
isOver = instant >= since + windowMs
end
if isOver then
count = 0
end
if not isOver and since <= instant then
start = since
else
if byClock then
start = floor(instant / windowMs) * windowMs
else
start = instant
end
end` },
  { sections: ['counter', 'calendar'], source: `if start ~= since and firstBound < lastBound then
local nearest = ARGV[lastBound]
for i = lastBound, firstBound, -1 do
if ARGV[i] > instant then
nearest = ARGV[i]
end
end
start = nearest + floor((instant - nearest) / windowMs) * windowMs
end` },
  { sections: ['counter'], source: `local endsIn = start + windowMs - now
if cost > limit then
return -1
end
if count + cost <= limit or cost == 0 then
return 0
end
return endsIn
end
room[4] = function()
return limit - count
end
take[4] = function(key, cost)
count = max(count, most < count + cost and most or count + cost)` },
  piece5,
  piece6,
  piece4,
  { sections: ['counter'], source: `end
refund[4] = function(key, cost, receipt)
if not since or start ~= receipt then
return
end
count = 0 > count - cost and 0 or count - cost` },
  piece5,
  piece6,
  piece4,
  piece3,
  { sections: ['counter', 'debit'], source: `debit[4] = function(key, cost)
local usual = most
most = max(limit, min(2147483647, floor(9007199254740991 / windowMs)))
count = max(count, most < count + cost and most or count + cost)` },
  { sections: ['counter', 'debit', 'joint'], source: `if joint > 0 then
local state, life = packBytes('>I7I6', count, start), count > 0 and start + windowMs - now or 0
put[mine], putRefunds[mine] = state, ''
puts, putLife = puts + 1, putLife > life and putLife or life
if '' ~= '' then
tells = true
end
else` },
  { sections: ['counter', 'debit'], source: `if count == 0 then
call('DEL', key)
elseif since == start then
call('SETRANGE', key, '0', packBytes('>I7', count))
elseif not since then
if newCountOf[own] ~= count then
newCountOf[own], newStateOf[own] = count, packBytes('>I7I6', count, start)
newLifeOf[own] = format('%d', start + windowMs - now + slack)
end
call('SET', key, newStateOf[own], 'PX', newLifeOf[own])
else
call('SET', key, packBytes('>I7I6', count, start), 'PX', start + windowMs - now + slack)
end` },
  { sections: ['counter', 'debit', 'joint'], source: `end` },
  { sections: ['counter', 'debit'], source: `most = usual
end` },
  { sections: ['counter'], source: `heal[4] = function(key)
if since and since > now + windowMs then` },
  piece5,
  piece6,
  piece4,
  { sections: ['counter'], source: `end
end
report[4] = function(key, cost, outcome)
say(packBytes('>BI7I6', outcome, count, start))
end
end` },
  { sections: ['concurrency'], source: `do
local limit, ttlMs
local held, isForeign
local nowText = format('%.0f', now)
open[5] = function(c)
local p = first[c]
limit, ttlMs = ARGV[p], ARGV[p + 1]
end` },
  { sections: ['concurrency', 'several'], source: `keep[5] = function(c)
kept1[c], kept2[c] = held, isForeign
end
recall[5] = function(c)
held, isForeign = kept1[c], kept2[c]
end` },
  { sections: ['concurrency'], source: `look[5] = function(key, cost)
local count = tryCall('ZCOUNT', key, '(' .. nowText, '+inf')
if type(count) == 'table' and not string.match(count.err, '^WRONGTYPE') then
if not string.match(count.err, 'non local key') then
error(count.err)
end
elsewhere = true
end
isForeign = type(count) == 'table'
held = isForeign and 0 or count
if cost > limit then
return -1
end
local missing = held + cost - limit
if cost == 0 or missing <= 0 then
return 0
end
local concurrency_endAt_result
local rank = missing - 1 - held
local permit = call('ZRANGE', key, rank, rank, 'WITHSCORES')
concurrency_endAt_result = permit[2] and min(tonumber(permit[2]), now + ttlMs) or now
return concurrency_endAt_result - now
end
take[5] = function(key, cost, permitId)
if isForeign then
call('DEL', key)
end
for nth = 0, cost - 1 do
call('ZADD', key, now + ttlMs, permitId .. '.' .. nth)
end
local expiry = tryCall('PEXPIRE', key, ttlMs + slack)
if type(expiry) == 'table' then
for nth = 0, cost - 1 do
call('ZREM', key, permitId .. '.' .. nth)
end
error(expiry.err)
end
held = held + cost
if call('ZCARD', key) > held then
call('ZREMRANGEBYSCORE', key, '-inf', nowText)
end
end
refund[5] = function(key, cost, receipt, chargedAt, permitId)
if isForeign then
return
end
for nth = 0, cost - 1 do
call('ZREM', key, permitId .. '.' .. nth)
end
local count = tryCall('ZCOUNT', key, '(' .. nowText, '+inf')
if type(count) == 'table' and not string.match(count.err, '^WRONGTYPE') then
if not string.match(count.err, 'non local key') then
error(count.err)
end
elsewhere = true
end
isForeign = type(count) == 'table'
held = isForeign and 0 or count
end
renew[5] = function(key, cost, permitId)
if isForeign then
return false
end
local latest, renewed = now + ttlMs, 0
for nth = 0, cost - 1 do
local permit = permitId .. '.' .. nth
local ends = call('ZSCORE', key, permit)
if ends and tonumber(ends) > now then
call('ZADD', key, latest, permit)
call('PEXPIRE', key, latest - now + slack)
renewed = renewed + 1
end
end
return renewed == cost
end
heal[5] = function(key)
if isForeign then
return
end
local latest = now + ttlMs
for _, permit in ipairs(call('ZRANGEBYSCORE', key, '(' .. format('%.0f', latest), '+inf')) do
call('ZADD', key, latest, permit)
end
end
report[5] = function(key, cost, outcome)
local ends = now
if held > 0 then
local rank = -1
local permit = call('ZRANGE', key, rank, rank, 'WITHSCORES')
ends = permit[2] and min(tonumber(permit[2]), now + ttlMs) or now
end
local free = 0 > limit - held and 0 or limit - held
say(packBytes('>BI7I7', outcome, free, ends - now))
if outcome == 0 then
local wait
if cost > limit then
wait = -1
else
local missing = held + cost - limit
if cost == 0 or missing <= 0 then
wait = 0
else
local concurrency_endAt_result
local rank = missing - 1 - held
local permit = call('ZRANGE', key, rank, rank, 'WITHSCORES')
concurrency_endAt_result = permit[2] and min(tonumber(permit[2]), now + ttlMs) or now
wait = concurrency_endAt_result - now
end
end
local room_2 = -1
if wait == 0 then
local cost_2 = free + 1
if cost_2 > limit then
room_2 = -1
else
local missing = held + cost_2 - limit
if cost_2 == 0 or missing <= 0 then
room_2 = 0
else
local concurrency_endAt_result
local rank = missing - 1 - held
local permit = call('ZRANGE', key, rank, rank, 'WITHSCORES')
concurrency_endAt_result = permit[2] and min(tonumber(permit[2]), now + ttlMs) or now
room_2 = concurrency_endAt_result - now
end
end
end
say(packBytes('>I7I7', wait + 1, room_2 + 1))
end
end
end` },
  piece7,
  { sections: ['charges'], source: `local taken = {}` },
  piece8,
  piece9,
  piece10,
  { sections: [], source: `local takesPermits = false` },
  { sections: ['joint'], source: `local keys = 0` },
  { sections: [], source: `for c = 1, cells do
local kind = ARGV[a] + 0` },
  { sections: ['joint'], source: `a = a + 1
local sharing = ARGV[a] + 0
if sharing < 2 then
keys = keys + 1
head[c] = sharing * c
else
head[c] = head[c - 1]
end
keyIndex[c] = keys` },
  { sections: [], source: `local params = ARGV[a + 1] + 0
kernel[c], first[c], last[c] = kind, a + 2, a + 1 + params
a = a + 2 + params
for p = first[c], last[c] do
ARGV[p] = ARGV[p] + 0
end
if prepare[kind] then
prepare[kind](c)
end` },
  { sections: ['joint'], source: `if head[c] > 0 then
local first_2, length = head[c], size[kind](c)
if first_2 == c then
cellsOf[c], endOf[c] = 0, 6
end
after[c], bytes[c] = endOf[first_2], length
cellsOf[first_2], endOf[first_2] = cellsOf[first_2] + 1, endOf[first_2] + length
end` },
  { sections: [], source: `if cells == 1 then
open[kind](c)
end
if kind == 5 then
takesPermits = true
end
end` },
  { sections: ['joint'], source: `head[cells + 1] = 0` },
  piece11,
  piece12,
  { sections: ['charges'], source: `local isKeeping = op >= 64
if isKeeping then
op = op - 64
end` },
  piece13,
  piece14,
  piece15,
  piece16,
  { sections: ['charges'], source: `said = ''` },
  { sections: [], source: `local permitId
if takesPermits then
permitId = ARGV[a]
a = a + 1
end` },
  piece17,
  piece18,
  { sections: ['charges'], source: `local chargeAt = a
if isKeeping then
a = a + (op < 3 and 5 or 3 + cells)
end` },
  { sections: [], source: `local ends, reason = 0, ''
elsewhere = false
if anyBlocked and op <= 2 then
for b = block, block + identities - 1 do
local value = tryCall('GET', KEYS[b])
if type(value) == 'table' and not string.match(value.err, '^WRONGTYPE') then
if not string.match(value.err, 'non local key') then
error(value.err)
end
elsewhere = true
end
if type(value) == 'string' then
local last_2, said_2 = string.match(value, '^(%d+) (.*)$')
if last_2 and tonumber(last_2) > (now > ends and now or ends) then
ends, reason = tonumber(last_2), said_2
end
end
end
end` },
  piece19,
  { sections: [], source: `if op >= 3 then
local chargedAt = 0
if op == 3 then
chargedAt = ARGV[a] + 0
a = a + 1
end` },
  { sections: ['charges'], source: `local outcome = 2
if isKeeping then
local record, identities_2, forMs = ARGV[chargeAt] + 0, ARGV[chargeAt + 1] + 0, ARGV[chargeAt + 2] + 0
local value = tryCall('GET', KEYS[record])
if type(value) == 'table' and not string.match(value.err, '^WRONGTYPE') then
if not string.match(value.err, 'non local key') then
error(value.err)
end
elsewhere = true
end
for c = 1, cells do
taken[c] = false
end
if type(value) ~= 'string' or #value < 8 then
outcome = 0
else
local __4, __5, ends_2 = unpackBytes('>BBI6', value)
if ends_2 <= now then
outcome = 0
else
local outcome_2, marks, isKnown, takesNone = 0, '', false, true
for c = 1, cells do
local mark, i = sub(value, 8 + c, 8 + c), ARGV[chargeAt + 2 + c] + 0
if i > 0 then
takesNone = false
end
if i ~= 0 then
local isTaken = i > 0
i = i > -i and i or -i
local from = 8 + cells + (i - 1) * 12
local epoch
local key = KEYS[record + i]
local epoch_2 = tryCall('GET', key)
if type(epoch_2) == 'table' and not string.match(epoch_2.err, '^WRONGTYPE') then
if not string.match(epoch_2.err, 'non local key') then
error(epoch_2.err)
end
elsewhere = true
end
if type(epoch_2) ~= 'string' or #epoch_2 ~= 18 then
epoch_2 = ''
end
epoch = epoch_2
if epoch ~= '' and sub(epoch, 7) == sub(value, from + 1, from + 12) then
isKnown = true
if not isTaken then
elseif mark == '\\0' then
outcome_2 = 2
taken[c] = true
if op ~= 5 then
mark = '\\1'
end
elseif outcome_2 == 0 then
outcome_2 = 1
end
end
end
marks = marks .. mark
end
if outcome_2 == 2 and op ~= 5 then
call('SETRANGE', KEYS[record], 8, marks)
end
if isKnown and takesNone then
outcome_2 = op == 5 and 2 or 1
end
if isKnown and op == 5 and ends_2 < now + forMs then
call('SET', KEYS[record], packBytes('>BBI6', cells, identities_2, now + forMs) .. sub(value, 9), 'PX', forMs + slack)
for i = record + 1, record + identities_2 do
local epoch
local key = KEYS[i]
local epoch_2 = tryCall('GET', key)
if type(epoch_2) == 'table' and not string.match(epoch_2.err, '^WRONGTYPE') then
if not string.match(epoch_2.err, 'non local key') then
error(epoch_2.err)
end
elsewhere = true
end
if type(epoch_2) ~= 'string' or #epoch_2 ~= 18 then
epoch_2 = ''
end
epoch = epoch_2
if epoch ~= '' then
local key_2 = KEYS[i]
if unpackBytes('>I6', epoch) < now + forMs then
call('SET', key_2, packBytes('>I6', now + 2 * forMs) .. sub(epoch, 7), 'PX', 2 * forMs + slack)
end
end
end
end
outcome = outcome_2
end
end
end` },
  { sections: [], source: `for c = 1, cells do
local key, kind, cost = KEYS[cell + c], kernel[c], costs[c]` },
  { sections: ['charges'], source: `if isKeeping and not taken[c] then
cost = 0
end` },
  { sections: ['joint'], source: `key, joint, mine = KEYS[cell + keyIndex[c]], head[c], c
if joint == c then
local stored = tryCall('GET', key)
local length = stored and #stored
if length ~= endOf[joint] and length ~= endOf[joint] + 13 * cellsOf[joint] then
if type(stored) == 'table' and not string.match(stored.err, '^WRONGTYPE') then
if not string.match(stored.err, 'non local key') then
error(stored.err)
end
elsewhere = true
end
stored = false
end
storedOf[joint] = stored
end
if joint > 0 then
if mine == joint then
puts, putLife = 0, 0
tells = storedOf[joint] and #storedOf[joint] > endOf[joint]
end
put[mine] = false
end` },
  { sections: [], source: `open[kind](c)
look[kind](key, 0)
if op == 3 then
if cost > 0 then
refund[kind](key, cost, ARGV[a] + 0, chargedAt, permitId, ARGV[a + 1] + 0)
end
a = a + 2` },
  { sections: ['debit'], source: `elseif op == 6 then
if cost > 0 and kind ~= 5 then
debit[kind](key, cost)
end` },
  { sections: [], source: `elseif kind == 5 then
if op == 4 then
refund[kind](key, cost, 0, 0, permitId)
else
local isHeld = renew[kind](key, cost, permitId)` },
  { sections: ['charges'], source: `if not isHeld then
outcome = 0
end` },
  { sections: [], source: `end
end
report[kind](key, 0, 1)` },
  piece20,
  piece21,
  { sections: ['charges'], source: `if isKeeping then
say(packBytes('B', outcome))
end` },
  { sections: [], source: `end
if ends > 0 then
if equals > 1 then
say(packBytes('>BI2I2', 8, equals, 0))
end
say(packBytes('>BI7I2', 2, ends - now, #reason) .. reason)
elseif op < 3 then
local allowed, possible = true, true
local admitted = 1
for c = 1, cells do
local kind = kernel[c]` },
  { sections: ['several'], source: `if cells > 1 then
open[kind](c)
end` },
  { sections: [], source: `local key = KEYS[cell + c]` },
  { sections: ['joint'], source: `key, joint, mine = KEYS[cell + keyIndex[c]], head[c], c
if joint == c then
local stored = tryCall('GET', key)
local length = stored and #stored
if length ~= endOf[joint] and length ~= endOf[joint] + 13 * cellsOf[joint] then
if type(stored) == 'table' and not string.match(stored.err, '^WRONGTYPE') then
if not string.match(stored.err, 'non local key') then
error(stored.err)
end
elsewhere = true
end
stored = false
end
storedOf[joint] = stored
end` },
  { sections: [], source: `local wait = look[kind](key, needs[c])
if wait ~= 0 or elsewhere then
allowed = false
end
if wait < 0 then
possible = false
end
if equals > 1 then
admitted = allowed and equals or 0
if allowed and costs[c] > 0 then
local units = room[kind]()
admitted = min(equals, floor((units - needs[c]) / costs[c]) + 1)
end
say(packBytes('>BI2I2', 8, equals, admitted))
end` },
  { sections: ['several'], source: `if cells > 1 then
keep[kind](c)
end` },
  piece21,
  piece22,
  { sections: [], source: `if elsewhere then
say(packBytes('B', 3))
else` },
  piece23,
  { sections: [], source: `local charged = op ~= 1 and (allowed or op == 2 and possible)
for c = 1, cells do
local key, kind, cost = KEYS[cell + c], kernel[c], costs[c]` },
  { sections: ['joint'], source: `key, joint, mine = KEYS[cell + keyIndex[c]], head[c], c
if joint > 0 then
if mine == joint then
puts, putLife = 0, 0
tells = storedOf[joint] and #storedOf[joint] > endOf[joint]
end
put[mine] = false
end` },
  { sections: [], source: `cost = cost * admitted` },
  { sections: ['several'], source: `if cells > 1 then
open[kind](c)
recall[kind](c)
end` },
  { sections: [], source: `if charged then
if cost > 0 and (allowed or kind ~= 5) then
take[kind](key, cost, permitId)
end
elseif op == 0 then
heal[kind](key)
end` },
  piece20,
  { sections: [], source: `local outcome = allowed and 1 or 0` },
  piece24,
  { sections: [], source: `for outcome_2 = outcome, admitted < equals and 0 or outcome, -1 do
report[kind](key, needs[c], outcome_2)
end` },
  piece25,
  piece21,
  { sections: ['charges'], source: `if isKeeping and charged and allowed then
local record, identities_2, forMs, fresh = ARGV[chargeAt] + 0, ARGV[chargeAt + 1] + 0, ARGV[chargeAt + 2] + 0, ARGV[chargeAt + 3]
local epochs = ''
for i = record + 1, record + identities_2 do
local epoch
local key = KEYS[i]
local epoch_2 = tryCall('GET', key)
if type(epoch_2) == 'table' and not string.match(epoch_2.err, '^WRONGTYPE') then
if not string.match(epoch_2.err, 'non local key') then
error(epoch_2.err)
end
elsewhere = true
end
if type(epoch_2) ~= 'string' or #epoch_2 ~= 18 then
epoch_2 = ''
end
epoch = epoch_2
if epoch == '' then
epoch = packBytes('>I6', 0) .. fresh
end
local key_2 = KEYS[i]
if unpackBytes('>I6', epoch) < now + forMs then
call('SET', key_2, packBytes('>I6', now + 2 * forMs) .. sub(epoch, 7), 'PX', 2 * forMs + slack)
end
epochs = epochs .. sub(epoch, 7)
end
local head_2 = packBytes('>BBI6', cells, identities_2, now + forMs)
call('SET', KEYS[record], head_2 .. rep('\\0', cells) .. epochs .. ARGV[chargeAt + 4] .. packBytes('>I6', now) .. said, 'PX', forMs + slack)
end` },
  { sections: ['bans'], source: `if bans_banEnds > 0 then
say(packBytes('>BI7I2', 16, bans_banEnds - now, #bans_banReason) .. bans_banReason)
end` },
  piece26,
  { sections: ['turns'], source: `if turns_asked <= 2 then
if turns_queue > 0 and turns_asked ~= 1 then
if turns_isAdmitted then
turns_tellsAt = turns_tellsAt + 1 + 2 * (ARGV[turns_tellsAt] + 0)
end
local turns_turns_write_result
local turns_key, turns_a, turns_latest = KEYS[turns_record + turns_queue - 1], turns_tellsAt, turns_queueLatest
local turns_record_2 = turns_queueOthers
for turns__ = 1, ARGV[turns_a] do
local turns_class, turns_aheadMs = ARGV[turns_a + 1], ARGV[turns_a + 2]
turns_record_2 = turns_record_2 .. turns_process .. struct.pack('>ddI6', turns_class, turns_turnsNow - turns_aheadMs, turns_turnsNow + turns_ttlMs)
if turns_turnsNow + turns_ttlMs > turns_latest then
turns_latest = turns_turnsNow + turns_ttlMs
end
turns_a = turns_a + 2
end
if turns_record_2 == '' then
redis.call('DEL', turns_key)
turns_turns_write_result = false
else
redis.call('SET', turns_key, turns_record_2, 'PX', string.format('%.0f', turns_latest - turns_turnsNow))
if turns_waitingMarker ~= '' then
local turns_ms = turns_latest - turns_turnsNow
if redis.call('PTTL', turns_waitingMarker) < turns_ms then
redis.call('SET', turns_waitingMarker, '', 'PX', string.format('%.0f', turns_ms))
end
end
turns_turns_write_result = true
end
if turns_turns_write_result then
turns_anyWaits, turns_isMarked, turns_anyRecord = true, true, true
end
end
local turns_waits = turns_isMarked and 1 or 0
if turns_anyWaits then
turns_waits = 2
end
say(packBytes('>I2B', turns_behindMs < 65535 and turns_behindMs or 65535, turns_waits))
turns_record = turns_record + turns_records
end` },
  { sections: [], source: `block = block + identities` },
  { sections: ['joint'], source: `cell = cell + keys - cells` },
  { sections: [], source: `cell = cell + cells
end
end
end
if more then
return reply .. concat(more)
end
return reply` },
] }

/** Scripts for batches whose plans have one cell each, all of one kind, and which give nothing back. */
export const UNIFORM_SCRIPTS: readonly KindScript[] = [
{ name: 'decide-bucket', kind: 'bucket', isShared: false, isJoint: false, pieces: [
  { sections: [], source: `local ARGV, KEYS = ARGV, KEYS
local tryCall = redis.pcall
local call, floor, ceil, min = redis.call, math.floor, math.ceil, math.min
local packBytes, unpackBytes = struct.pack, struct.unpack
local format, concat = string.format, table.concat
local elsewhere
local clock = ARGV[1]
local now
local slack = 0
if clock ~= '' then
now, slack = clock + 0, 3600000
else
local time = call('TIME')
now = time[1] * 1000 + floor(time[2] / 1000)
end
local reply, more, pieces = packBytes('>I6', now), nil, 0
local first
local last
local costs
local needs
local limit, windowMs, capacity, stepMs
local newDebtOf
local newStateOf
local newLifeOf
local debt, instant, since, expires, refunds
local pace, beyond` },
  piece7,
  piece8,
  piece27,
  piece10,
  { sections: [], source: `local params = ARGV[a + 1] + 0
first, last = a + 2, a + 1 + params
a = a + 2 + params
for p = first, last do
ARGV[p] = ARGV[p] + 0
end
newDebtOf = nil
local p = first
limit, windowMs, capacity, stepMs = ARGV[p], ARGV[p + 1], ARGV[p + 2], ARGV[p + 3]` },
  piece11,
  piece12,
  piece13,
  piece28,
  piece15,
  piece16,
  piece17,
  piece18,
  piece29,
  piece19,
  { sections: [], source: `if ends > 0 then
if equals > 1 then
local piece = packBytes('>BI2I2', 8, equals, 0)
if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
end
local piece = packBytes('>BI7I2', 2, ends - now, #reason) .. reason
if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
elseif op < 3 then
local allowed, possible = true, true
local admitted = 1
local key = KEYS[cell + 1]
local wait
local cost = needs
local stored = tryCall('GET', key)
local bytes = stored and #stored
if bytes == 19 or bytes == 32 then
if bytes == 19 then
debt, since, expires = unpackBytes('>I7I6I6', stored)
refunds = ''
else
debt, since, expires, refunds = unpackBytes('>I7I6I6c13', stored)
end
if since > now and since <= now + windowMs then
instant = since
else
instant = now
end
local bucket_paceOf_result
if debt <= 2 * (limit > capacity and limit or capacity) * windowMs then
bucket_paceOf_result = limit
else
bucket_paceOf_result = ceil(debt / (2 * windowMs))
end
pace, beyond = bucket_paceOf_result, nil
if pace ~= limit then
beyond = debt
end
local bucket_atPace_result
if pace == limit then
bucket_atPace_result = debt
else
bucket_atPace_result = pace * 2 * windowMs
end
local debt_2, since_2 = bucket_atPace_result, since < instant and since or instant
local elapsed
if stepMs == 1 then
elapsed = instant - since_2
else
elapsed = floor(instant / stepMs) * stepMs - floor(since_2 / stepMs) * stepMs
end
debt = 0 > debt_2 - elapsed * pace and 0 or debt_2 - elapsed * pace
else
if type(stored) == 'table' and not string.match(stored.err, '^WRONGTYPE') then
if not string.match(stored.err, 'non local key') then
error(stored.err)
end
elsewhere = true
end
debt, instant, since, expires, refunds = 0, now, nil, nil, ''
pace, beyond = limit, nil
end
if cost > capacity then
wait = -1
else
local excess = debt - (capacity - cost) * windowMs
if excess <= 0 or cost < (1 < capacity and 1 or capacity) then
wait = 0
else
local steps = ceil(excess / (pace * stepMs))
wait = (floor(instant / stepMs) + steps) * stepMs - instant
end
end
if wait ~= 0 or elsewhere then
allowed = false
end
if wait < 0 then
possible = false
end
if equals > 1 then
admitted = allowed and equals or 0
if allowed and costs > 0 then
local units = floor((capacity * windowMs - debt) / windowMs)
admitted = min(equals, floor((units - needs) / costs) + 1)
end
local piece = packBytes('>BI2I2', 8, equals, admitted)
if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
end` },
  piece22,
  piece30,
  piece23,
  { sections: [], source: `local charged = op ~= 1 and (allowed or op == 2 and possible)
local key_2, cost_2 = KEYS[cell + 1], costs
cost_2 = cost_2 * admitted
if charged then
if cost_2 > 0 then
if debt > capacity * windowMs then
if since and since > now + windowMs then
if debt == 0 and refunds == '' then
call('DEL', key_2)
else
local bucket_wait_result
local wait_2
local excess = debt - (capacity - capacity) * windowMs
if excess <= 0 or capacity < (1 < capacity and 1 or capacity) then
wait_2 = 0
else
local steps = ceil(excess / (pace * stepMs))
wait_2 = (floor(instant / stepMs) + steps) * stepMs - instant
end
if wait_2 > 0 then
bucket_wait_result = wait_2 + instant - now
else
bucket_wait_result = wait_2
end
local ends_2 = now + (1 > bucket_wait_result and 1 or bucket_wait_result)
if ends_2 <= expires then
local state = packBytes('>I7I6', debt, instant)
if refunds ~= '' then
state = packBytes('>I7I6I6', debt, instant, expires) .. refunds
end
call('SETRANGE', key_2, '0', state)
else
ends_2 = ends_2 + min(10000, ceil(capacity * windowMs / limit))
call('SET', key_2, packBytes('>I7I6I6', debt, instant, ends_2) .. refunds, 'PX', ends_2 - now + slack)
end
end
end
else
debt = capacity * windowMs < debt + cost_2 * windowMs and capacity * windowMs or debt + cost_2 * windowMs
pace, beyond = limit, nil
if since then
if debt == 0 and refunds == '' then
call('DEL', key_2)
else
local bucket_wait_result
local wait_2
local excess = debt - (capacity - capacity) * windowMs
if excess <= 0 or capacity < (1 < capacity and 1 or capacity) then
wait_2 = 0
else
local steps = ceil(excess / (pace * stepMs))
wait_2 = (floor(instant / stepMs) + steps) * stepMs - instant
end
if wait_2 > 0 then
bucket_wait_result = wait_2 + instant - now
else
bucket_wait_result = wait_2
end
local ends_2 = now + (1 > bucket_wait_result and 1 or bucket_wait_result)
if ends_2 <= expires then
local state = packBytes('>I7I6', debt, instant)
if refunds ~= '' then
state = packBytes('>I7I6I6', debt, instant, expires) .. refunds
end
call('SETRANGE', key_2, '0', state)
else
ends_2 = ends_2 + min(10000, ceil(capacity * windowMs / limit))
call('SET', key_2, packBytes('>I7I6I6', debt, instant, ends_2) .. refunds, 'PX', ends_2 - now + slack)
end
end
else
if newDebtOf ~= debt then
local life
local wait_2
local excess = debt - (capacity - capacity) * windowMs
if excess <= 0 or capacity < (1 < capacity and 1 or capacity) then
wait_2 = 0
else
local steps = ceil(excess / (pace * stepMs))
wait_2 = (floor(instant / stepMs) + steps) * stepMs - instant
end
if wait_2 > 0 then
life = wait_2 + instant - now
else
life = wait_2
end
newDebtOf, newStateOf = debt, packBytes('>I7I6I6', debt, now, now + life)
newLifeOf = format('%d', life + slack)
end
call('SET', key_2, newStateOf, 'PX', newLifeOf)
end
end
end
elseif op == 0 then
if since and since > now + windowMs then
if debt == 0 and refunds == '' then
call('DEL', key_2)
else
local bucket_wait_result
local wait_2
local excess = debt - (capacity - capacity) * windowMs
if excess <= 0 or capacity < (1 < capacity and 1 or capacity) then
wait_2 = 0
else
local steps = ceil(excess / (pace * stepMs))
wait_2 = (floor(instant / stepMs) + steps) * stepMs - instant
end
if wait_2 > 0 then
bucket_wait_result = wait_2 + instant - now
else
bucket_wait_result = wait_2
end
local ends_2 = now + (1 > bucket_wait_result and 1 or bucket_wait_result)
if ends_2 <= expires then
local state = packBytes('>I7I6', debt, instant)
if refunds ~= '' then
state = packBytes('>I7I6I6', debt, instant, expires) .. refunds
end
call('SETRANGE', key_2, '0', state)
else
ends_2 = ends_2 + min(10000, ceil(capacity * windowMs / limit))
call('SET', key_2, packBytes('>I7I6I6', debt, instant, ends_2) .. refunds, 'PX', ends_2 - now + slack)
end
end
end
end
local outcome = allowed and 1 or 0` },
  piece24,
  piece31,
  piece25,
  piece32,
  piece26,
  piece33,
  piece34,
] },
{ name: 'decide-buckets', kind: 'bucket', isShared: false, isJoint: true, pieces: [
  { sections: [], source: `local ARGV, KEYS = ARGV, KEYS
local tryCall = redis.pcall
local call, floor, ceil, min = redis.call, math.floor, math.ceil, math.min
local packBytes, unpackBytes = struct.pack, struct.unpack
local sub, rep, format, concat = string.sub, string.rep, string.format, table.concat
local elsewhere
local clock = ARGV[1]
local now
local slack = 0
if clock ~= '' then
now, slack = clock + 0, 3600000
else
local time = call('TIME')
now = time[1] * 1000 + floor(time[2] / 1000)
end
local reply, more, pieces = packBytes('>I6', now), nil, 0
local first = {}
local last = {}
local keyIndex, head = {}, {}
local costs, needs = {}, {}
local kept1, kept2, kept3, kept4, kept5 = {}, {}, {}, {}, {}
local kept6 = {}
local joint, mine
local NO_REFUNDS = rep('\\0', 13)
local after, bytes = {}, {}
local cellsOf, endOf, storedOf = {}, {}, {}
local put, putRefunds, puts, putLife, tells = {}, {}, nil, nil, nil
local own, limit, windowMs, capacity, stepMs
local newDebtOf, newStateOf, newLifeOf = {}, {}, {}
local debt, instant, since, expires, refunds
local pace, beyond` },
  piece7,
  piece8,
  piece9,
  piece10,
  { sections: [], source: `local keys = 0
for c = 1, cells do
a = a + 1
local sharing = ARGV[a] + 0
if sharing < 2 then
keys = keys + 1
head[c] = sharing * c
else
head[c] = head[c - 1]
end
keyIndex[c] = keys
local params = ARGV[a + 1] + 0
first[c], last[c] = a + 2, a + 1 + params
a = a + 2 + params
for p = first[c], last[c] do
ARGV[p] = ARGV[p] + 0
end
newDebtOf[c] = nil
if head[c] > 0 then
local first_2 = head[c]
if first_2 == c then
cellsOf[c], endOf[c] = 0, 6
end
after[c], bytes[c] = endOf[first_2], 13
cellsOf[first_2], endOf[first_2] = cellsOf[first_2] + 1, endOf[first_2] + 13
end
if cells == 1 then
local p = first[c]
own = c
limit, windowMs, capacity, stepMs = ARGV[p], ARGV[p + 1], ARGV[p + 2], ARGV[p + 3]
end
end
head[cells + 1] = 0` },
  piece11,
  piece12,
  piece13,
  piece14,
  piece15,
  piece16,
  piece17,
  piece18,
  piece29,
  piece19,
  { sections: [], source: `if ends > 0 then
if equals > 1 then
local piece = packBytes('>BI2I2', 8, equals, 0)
if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
end
local piece = packBytes('>BI7I2', 2, ends - now, #reason) .. reason
if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
elseif op < 3 then
local allowed, possible = true, true
local admitted = 1
for c = 1, cells do
if cells > 1 then
local p = first[c]
own = c
limit, windowMs, capacity, stepMs = ARGV[p], ARGV[p + 1], ARGV[p + 2], ARGV[p + 3]
end
local key = KEYS[cell + c]
key, joint, mine = KEYS[cell + keyIndex[c]], head[c], c
if joint == c then
local stored = tryCall('GET', key)
local length = stored and #stored
if length ~= endOf[joint] and length ~= endOf[joint] + 13 * cellsOf[joint] then
if type(stored) == 'table' and not string.match(stored.err, '^WRONGTYPE') then
if not string.match(stored.err, 'non local key') then
error(stored.err)
end
elsewhere = true
end
stored = false
end
storedOf[joint] = stored
end
local wait
local cost = needs[c]
if joint > 0 then
local stored = storedOf[joint]
local joint_refunds_result
local stored_2, at = storedOf[joint], endOf[joint] + 13 * (mine - joint)
if not stored_2 or #stored_2 <= at then
joint_refunds_result = ''
else
local refunds_2 = sub(stored_2, at + 1, at + 13)
if refunds_2 == NO_REFUNDS then
joint_refunds_result = ''
else
joint_refunds_result = refunds_2
end
end
debt, refunds = 0, joint_refunds_result
if stored then
debt, since = unpackBytes('>I7I6', stored, after[mine] + 1)
end
if debt > 0 or refunds ~= '' then
if since > now and since <= now + windowMs then
instant = since
else
instant = now
end
local bucket_paceOf_result
if debt <= 2 * (limit > capacity and limit or capacity) * windowMs then
bucket_paceOf_result = limit
else
bucket_paceOf_result = ceil(debt / (2 * windowMs))
end
pace, beyond = bucket_paceOf_result, nil
if pace ~= limit then
beyond = debt
end
local bucket_atPace_result
if pace == limit then
bucket_atPace_result = debt
else
bucket_atPace_result = pace * 2 * windowMs
end
local debt_2, since_2 = bucket_atPace_result, since < instant and since or instant
local elapsed
if stepMs == 1 then
elapsed = instant - since_2
else
elapsed = floor(instant / stepMs) * stepMs - floor(since_2 / stepMs) * stepMs
end
debt = 0 > debt_2 - elapsed * pace and 0 or debt_2 - elapsed * pace
else
instant, since, pace, beyond = now, nil, limit, nil
end
else
local stored = tryCall('GET', key)
local bytes_2 = stored and #stored
if bytes_2 == 19 or bytes_2 == 32 then
if bytes_2 == 19 then
debt, since, expires = unpackBytes('>I7I6I6', stored)
refunds = ''
else
debt, since, expires, refunds = unpackBytes('>I7I6I6c13', stored)
end
if since > now and since <= now + windowMs then
instant = since
else
instant = now
end
local bucket_paceOf_result
if debt <= 2 * (limit > capacity and limit or capacity) * windowMs then
bucket_paceOf_result = limit
else
bucket_paceOf_result = ceil(debt / (2 * windowMs))
end
pace, beyond = bucket_paceOf_result, nil
if pace ~= limit then
beyond = debt
end
local bucket_atPace_result
if pace == limit then
bucket_atPace_result = debt
else
bucket_atPace_result = pace * 2 * windowMs
end
local debt_2, since_2 = bucket_atPace_result, since < instant and since or instant
local elapsed
if stepMs == 1 then
elapsed = instant - since_2
else
elapsed = floor(instant / stepMs) * stepMs - floor(since_2 / stepMs) * stepMs
end
debt = 0 > debt_2 - elapsed * pace and 0 or debt_2 - elapsed * pace
else
if type(stored) == 'table' and not string.match(stored.err, '^WRONGTYPE') then
if not string.match(stored.err, 'non local key') then
error(stored.err)
end
elsewhere = true
end
debt, instant, since, expires, refunds = 0, now, nil, nil, ''
pace, beyond = limit, nil
end
end
if cost > capacity then
wait = -1
else
local excess = debt - (capacity - cost) * windowMs
if excess <= 0 or cost < (1 < capacity and 1 or capacity) then
wait = 0
else
local steps = ceil(excess / (pace * stepMs))
wait = (floor(instant / stepMs) + steps) * stepMs - instant
end
end
if wait ~= 0 or elsewhere then
allowed = false
end
if wait < 0 then
possible = false
end
if equals > 1 then
admitted = allowed and equals or 0
if allowed and costs[c] > 0 then
local units = floor((capacity * windowMs - debt) / windowMs)
admitted = min(equals, floor((units - needs[c]) / costs[c]) + 1)
end
local piece = packBytes('>BI2I2', 8, equals, admitted)
if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
end
if cells > 1 then
kept1[c], kept2[c], kept3[c], kept4[c], kept5[c], kept6[c] = debt, instant, since, expires, refunds, beyond
end
end` },
  piece22,
  piece30,
  piece23,
  { sections: [], source: `local charged = op ~= 1 and (allowed or op == 2 and possible)
for c = 1, cells do
local key, cost = KEYS[cell + c], costs[c]
key, joint, mine = KEYS[cell + keyIndex[c]], head[c], c
if joint > 0 then
if mine == joint then
puts, putLife = 0, 0
tells = storedOf[joint] and #storedOf[joint] > endOf[joint]
end
put[mine] = false
end
cost = cost * admitted
if cells > 1 then
local p = first[c]
own = c
limit, windowMs, capacity, stepMs = ARGV[p], ARGV[p + 1], ARGV[p + 2], ARGV[p + 3]
debt, instant, since, expires, refunds, beyond = kept1[c], kept2[c], kept3[c], kept4[c], kept5[c], kept6[c]
pace = limit
if beyond then
if beyond <= 2 * (limit > capacity and limit or capacity) * windowMs then
pace = limit
else
pace = ceil(beyond / (2 * windowMs))
end
end
end
if charged then
if cost > 0 then
if debt > capacity * windowMs then
if since and since > now + windowMs then
if joint > 0 then
local life = 0
if debt > 0 then
local bucket_wait_result
local wait
local excess = debt - (capacity - capacity) * windowMs
if excess <= 0 or capacity < (1 < capacity and 1 or capacity) then
wait = 0
else
local steps = ceil(excess / (pace * stepMs))
wait = (floor(instant / stepMs) + steps) * stepMs - instant
end
if wait > 0 then
bucket_wait_result = wait + instant - now
else
bucket_wait_result = wait
end
life = 1 > bucket_wait_result and 1 or bucket_wait_result
end
local state = packBytes('>I7I6', debt, instant)
put[mine], putRefunds[mine] = state, refunds
puts, putLife = puts + 1, putLife > life and putLife or life
if refunds ~= '' then
tells = true
end
else
if debt == 0 and refunds == '' then
call('DEL', key)
else
local bucket_wait_result
local wait
local excess = debt - (capacity - capacity) * windowMs
if excess <= 0 or capacity < (1 < capacity and 1 or capacity) then
wait = 0
else
local steps = ceil(excess / (pace * stepMs))
wait = (floor(instant / stepMs) + steps) * stepMs - instant
end
if wait > 0 then
bucket_wait_result = wait + instant - now
else
bucket_wait_result = wait
end
local ends_2 = now + (1 > bucket_wait_result and 1 or bucket_wait_result)
if ends_2 <= expires then
local state = packBytes('>I7I6', debt, instant)
if refunds ~= '' then
state = packBytes('>I7I6I6', debt, instant, expires) .. refunds
end
call('SETRANGE', key, '0', state)
else
ends_2 = ends_2 + min(10000, ceil(capacity * windowMs / limit))
call('SET', key, packBytes('>I7I6I6', debt, instant, ends_2) .. refunds, 'PX', ends_2 - now + slack)
end
end
end
end
else
debt = capacity * windowMs < debt + cost * windowMs and capacity * windowMs or debt + cost * windowMs
pace, beyond = limit, nil
if joint > 0 then
local bucket_wait_result
local wait
local excess = debt - (capacity - capacity) * windowMs
if excess <= 0 or capacity < (1 < capacity and 1 or capacity) then
wait = 0
else
local steps = ceil(excess / (pace * stepMs))
wait = (floor(instant / stepMs) + steps) * stepMs - instant
end
if wait > 0 then
bucket_wait_result = wait + instant - now
else
bucket_wait_result = wait
end
local state, life = packBytes('>I7I6', debt, instant), bucket_wait_result
put[mine], putRefunds[mine] = state, refunds
puts, putLife = puts + 1, putLife > life and putLife or life
if refunds ~= '' then
tells = true
end
else
if since then
if debt == 0 and refunds == '' then
call('DEL', key)
else
local bucket_wait_result
local wait
local excess = debt - (capacity - capacity) * windowMs
if excess <= 0 or capacity < (1 < capacity and 1 or capacity) then
wait = 0
else
local steps = ceil(excess / (pace * stepMs))
wait = (floor(instant / stepMs) + steps) * stepMs - instant
end
if wait > 0 then
bucket_wait_result = wait + instant - now
else
bucket_wait_result = wait
end
local ends_2 = now + (1 > bucket_wait_result and 1 or bucket_wait_result)
if ends_2 <= expires then
local state = packBytes('>I7I6', debt, instant)
if refunds ~= '' then
state = packBytes('>I7I6I6', debt, instant, expires) .. refunds
end
call('SETRANGE', key, '0', state)
else
ends_2 = ends_2 + min(10000, ceil(capacity * windowMs / limit))
call('SET', key, packBytes('>I7I6I6', debt, instant, ends_2) .. refunds, 'PX', ends_2 - now + slack)
end
end
else
if newDebtOf[own] ~= debt then
local life
local wait
local excess = debt - (capacity - capacity) * windowMs
if excess <= 0 or capacity < (1 < capacity and 1 or capacity) then
wait = 0
else
local steps = ceil(excess / (pace * stepMs))
wait = (floor(instant / stepMs) + steps) * stepMs - instant
end
if wait > 0 then
life = wait + instant - now
else
life = wait
end
newDebtOf[own], newStateOf[own] = debt, packBytes('>I7I6I6', debt, now, now + life)
newLifeOf[own] = format('%d', life + slack)
end
call('SET', key, newStateOf[own], 'PX', newLifeOf[own])
end
end
end
end
elseif op == 0 then
if since and since > now + windowMs then
if joint > 0 then
local life = 0
if debt > 0 then
local bucket_wait_result
local wait
local excess = debt - (capacity - capacity) * windowMs
if excess <= 0 or capacity < (1 < capacity and 1 or capacity) then
wait = 0
else
local steps = ceil(excess / (pace * stepMs))
wait = (floor(instant / stepMs) + steps) * stepMs - instant
end
if wait > 0 then
bucket_wait_result = wait + instant - now
else
bucket_wait_result = wait
end
life = 1 > bucket_wait_result and 1 or bucket_wait_result
end
local state = packBytes('>I7I6', debt, instant)
put[mine], putRefunds[mine] = state, refunds
puts, putLife = puts + 1, putLife > life and putLife or life
if refunds ~= '' then
tells = true
end
else
if debt == 0 and refunds == '' then
call('DEL', key)
else
local bucket_wait_result
local wait
local excess = debt - (capacity - capacity) * windowMs
if excess <= 0 or capacity < (1 < capacity and 1 or capacity) then
wait = 0
else
local steps = ceil(excess / (pace * stepMs))
wait = (floor(instant / stepMs) + steps) * stepMs - instant
end
if wait > 0 then
bucket_wait_result = wait + instant - now
else
bucket_wait_result = wait
end
local ends_2 = now + (1 > bucket_wait_result and 1 or bucket_wait_result)
if ends_2 <= expires then
local state = packBytes('>I7I6', debt, instant)
if refunds ~= '' then
state = packBytes('>I7I6I6', debt, instant, expires) .. refunds
end
call('SETRANGE', key, '0', state)
else
ends_2 = ends_2 + min(10000, ceil(capacity * windowMs / limit))
call('SET', key, packBytes('>I7I6I6', debt, instant, ends_2) .. refunds, 'PX', ends_2 - now + slack)
end
end
end
end
end
if joint > 0 and head[c + 1] ~= joint then
local stored = storedOf[joint]
if puts > 0 and (stored or putLife > 0) then
if puts < cellsOf[joint] then
for c_2 = joint, mine do
if not put[c_2] then
put[c_2] = stored and sub(stored, after[c_2] + 1, after[c_2] + bytes[c_2]) or rep('\\0', bytes[c_2])
local joint_refunds_result
local stored_2, at = storedOf[joint], endOf[joint] + 13 * (c_2 - joint)
if not stored_2 or #stored_2 <= at then
joint_refunds_result = ''
else
local refunds_2 = sub(stored_2, at + 1, at + 13)
if refunds_2 == NO_REFUNDS then
joint_refunds_result = ''
else
joint_refunds_result = refunds_2
end
end
putRefunds[c_2] = joint_refunds_result
end
end
end
local value = concat(put, '', joint, mine)
if tells then
for c_2 = joint, mine do
value = value .. (putRefunds[c_2] == '' and NO_REFUNDS or putRefunds[c_2])
end
end
local ends_2, expires_2 = now + (1 > putLife and 1 or putLife), stored and unpackBytes('>I6', stored) or 0
if putLife <= 0 and puts == cellsOf[joint] and not tells then
call('DEL', key)
elseif ends_2 <= expires_2 then
call('SETRANGE', key, '6', value)
else
if stored then
ends_2 = ends_2 + (10000 < putLife and 10000 or putLife)
end
call('SET', key, packBytes('>I6', ends_2) .. value, 'PX', ends_2 - now + slack)
end
end
end
local outcome = allowed and 1 or 0` },
  piece24,
  piece31,
  piece25,
  piece21,
  piece32,
  piece26,
  piece33,
  piece35,
] },
{ name: 'decide-concurrency', kind: 'concurrency', isShared: false, isJoint: false, pieces: [
  { sections: [], source: `local ARGV, KEYS = ARGV, KEYS
local tryCall = redis.pcall
local call, floor, min = redis.call, math.floor, math.min
local packBytes = struct.pack
local format, concat = string.format, table.concat
local elsewhere
local clock = ARGV[1]
local now
local slack = 0
if clock ~= '' then
now, slack = clock + 0, 3600000
else
local time = call('TIME')
now = time[1] * 1000 + floor(time[2] / 1000)
end
local reply, more, pieces = packBytes('>I6', now), nil, 0
local first
local last
local costs
local needs
local limit, ttlMs
local held, isForeign
local nowText = format('%.0f', now)` },
  piece7,
  piece8,
  piece27,
  piece10,
  { sections: [], source: `local takesPermits = false
local params = ARGV[a + 1] + 0
first, last = a + 2, a + 1 + params
a = a + 2 + params
for p = first, last do
ARGV[p] = ARGV[p] + 0
end
local p = first
limit, ttlMs = ARGV[p], ARGV[p + 1]
takesPermits = true` },
  piece11,
  piece12,
  piece13,
  piece36,
  piece15,
  { sections: [], source: `for __3 = 1, decisions do
local permitId
if takesPermits then
permitId = ARGV[a]
a = a + 1
end` },
  piece17,
  piece18,
  piece29,
  piece19,
  { sections: [], source: `if ends > 0 then
local piece = packBytes('>BI7I2', 2, ends - now, #reason) .. reason
if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
elseif op < 3 then
local allowed, possible = true, true
local key = KEYS[cell + 1]
local wait
local cost = needs
local count = tryCall('ZCOUNT', key, '(' .. nowText, '+inf')
if type(count) == 'table' and not string.match(count.err, '^WRONGTYPE') then
if not string.match(count.err, 'non local key') then
error(count.err)
end
elsewhere = true
end
isForeign = type(count) == 'table'
held = isForeign and 0 or count
if cost > limit then
wait = -1
else
local missing = held + cost - limit
if cost == 0 or missing <= 0 then
wait = 0
else
local concurrency_endAt_result
local rank = missing - 1 - held
local permit = call('ZRANGE', key, rank, rank, 'WITHSCORES')
concurrency_endAt_result = permit[2] and min(tonumber(permit[2]), now + ttlMs) or now
wait = concurrency_endAt_result - now
end
end
if wait ~= 0 or elsewhere then
allowed = false
end
if wait < 0 then
possible = false
end` },
  piece22,
  piece30,
  piece23,
  { sections: [], source: `local charged = op ~= 1 and (allowed or op == 2 and possible)
local key_2, cost_2 = KEYS[cell + 1], costs
if charged then
if cost_2 > 0 and allowed then
if isForeign then
call('DEL', key_2)
end
for nth = 0, cost_2 - 1 do
call('ZADD', key_2, now + ttlMs, permitId .. '.' .. nth)
end
local expiry = tryCall('PEXPIRE', key_2, ttlMs + slack)
if type(expiry) == 'table' then
for nth = 0, cost_2 - 1 do
call('ZREM', key_2, permitId .. '.' .. nth)
end
error(expiry.err)
end
held = held + cost_2
if call('ZCARD', key_2) > held then
call('ZREMRANGEBYSCORE', key_2, '-inf', nowText)
end
end
elseif op == 0 then
if isForeign then
else
local latest = now + ttlMs
for __4, permit in ipairs(call('ZRANGEBYSCORE', key_2, '(' .. format('%.0f', latest), '+inf')) do
call('ZADD', key_2, latest, permit)
end
end
end
local outcome = allowed and 1 or 0` },
  piece24,
  { sections: [], source: `local cost_3 = needs
local ends_2 = now
if held > 0 then
local rank = -1
local permit = call('ZRANGE', key_2, rank, rank, 'WITHSCORES')
ends_2 = permit[2] and min(tonumber(permit[2]), now + ttlMs) or now
end
local free = 0 > limit - held and 0 or limit - held
local piece = packBytes('>BI7I7', outcome, free, ends_2 - now)
if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
if outcome == 0 then
local wait_2
if cost_3 > limit then
wait_2 = -1
else
local missing = held + cost_3 - limit
if cost_3 == 0 or missing <= 0 then
wait_2 = 0
else
local concurrency_endAt_result
local rank = missing - 1 - held
local permit = call('ZRANGE', key_2, rank, rank, 'WITHSCORES')
concurrency_endAt_result = permit[2] and min(tonumber(permit[2]), now + ttlMs) or now
wait_2 = concurrency_endAt_result - now
end
end
local room = -1
if wait_2 == 0 then
local cost_4 = free + 1
if cost_4 > limit then
room = -1
else
local missing = held + cost_4 - limit
if cost_4 == 0 or missing <= 0 then
room = 0
else
local concurrency_endAt_result
local rank = missing - 1 - held
local permit = call('ZRANGE', key_2, rank, rank, 'WITHSCORES')
concurrency_endAt_result = permit[2] and min(tonumber(permit[2]), now + ttlMs) or now
room = concurrency_endAt_result - now
end
end
end
local piece_2 = packBytes('>I7I7', wait_2 + 1, room + 1)
if pieces == 0 then
reply = reply .. piece_2
else
more = more or {}
more[pieces] = piece_2
end
pieces = pieces + 1
end` },
  piece25,
  piece32,
  piece26,
  piece33,
  piece34,
] },
{ name: 'decide-counter', kind: 'counter', isShared: false, isJoint: false, pieces: [
  { sections: [], source: `local ARGV, KEYS = ARGV, KEYS
local tryCall = redis.pcall
local call, floor, max, min = redis.call, math.floor, math.max, math.min
local packBytes, unpackBytes = struct.pack, struct.unpack
local format, concat = string.format, table.concat
local elsewhere
local clock = ARGV[1]
local now
local slack = 0
if clock ~= '' then
now, slack = clock + 0, 3600000
else
local time = call('TIME')
now = time[1] * 1000 + floor(time[2] / 1000)
end
local reply, more, pieces = packBytes('>I6', now), nil, 0
local first
local last
local costs
local needs` },
  { sections: [], source: `local limit, windowMs, byClock
local most` },
  piece37,
  { sections: [], source: `local newCountOf
local newStateOf
local newLifeOf
local count, start, since` },
  piece7,
  piece8,
  piece27,
  piece10,
  { sections: [], source: `local params = ARGV[a + 1] + 0
first, last = a + 2, a + 1 + params
a = a + 2 + params
for p = first, last do
ARGV[p] = ARGV[p] + 0
end
newCountOf = nil
local p = first
limit, windowMs, byClock = ARGV[p], ARGV[p + 1], ARGV[p + 3] == 1
most = limit
if ARGV[p + 2] == 1 then
most = max(limit, min(2147483647, floor(9007199254740991 / windowMs)))
end` },
  { sections: ['calendar'], source: `firstBound, lastBound = p + 4, last` },
  piece11,
  piece12,
  piece13,
  piece28,
  piece15,
  piece16,
  piece17,
  piece18,
  piece29,
  piece19,
  { sections: [], source: `if ends > 0 then
if equals > 1 then
local piece = packBytes('>BI2I2', 8, equals, 0)
if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
end
local piece = packBytes('>BI7I2', 2, ends - now, #reason) .. reason
if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
elseif op < 3 then
local allowed, possible = true, true
local admitted = 1
local key = KEYS[cell + 1]
local wait
local cost = needs
local instant, isOver = now, true
since = nil
local stored = tryCall('GET', key)
if stored and #stored == 13 then
count, since = unpackBytes('>I7I6', stored)
else
if type(stored) == 'table' and not string.match(stored.err, '^WRONGTYPE') then
if not string.match(stored.err, 'non local key') then
error(stored.err)
end
elsewhere = true
end
end
if since then
if since > now and since <= now + windowMs then
instant = since
else
instant = now
end
isOver = instant >= since + windowMs
end
if isOver then
count = 0
end
if not isOver and since <= instant then
start = since
else
if byClock then
start = floor(instant / windowMs) * windowMs
else
start = instant
end
end` },
  piece38,
  { sections: [], source: `local endsIn = start + windowMs - now
if cost > limit then
wait = -1
else
if count + cost <= limit or cost == 0 then
wait = 0
else
wait = endsIn
end
end
if wait ~= 0 or elsewhere then
allowed = false
end
if wait < 0 then
possible = false
end
if equals > 1 then
admitted = allowed and equals or 0
if allowed and costs > 0 then
local units = limit - count
admitted = min(equals, floor((units - needs) / costs) + 1)
end
local piece = packBytes('>BI2I2', 8, equals, admitted)
if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
end` },
  piece22,
  piece30,
  piece23,
  { sections: [], source: `local charged = op ~= 1 and (allowed or op == 2 and possible)
local key_2, cost_2 = KEYS[cell + 1], costs
cost_2 = cost_2 * admitted
if charged then
if cost_2 > 0 then
count = max(count, most < count + cost_2 and most or count + cost_2)
if count == 0 then
call('DEL', key_2)
elseif since == start then
call('SETRANGE', key_2, '0', packBytes('>I7', count))
elseif not since then
if newCountOf ~= count then
newCountOf, newStateOf = count, packBytes('>I7I6', count, start)
newLifeOf = format('%d', start + windowMs - now + slack)
end
call('SET', key_2, newStateOf, 'PX', newLifeOf)
else
call('SET', key_2, packBytes('>I7I6', count, start), 'PX', start + windowMs - now + slack)
end
end
elseif op == 0 then
if since and since > now + windowMs then
if count == 0 then
call('DEL', key_2)
elseif since == start then
call('SETRANGE', key_2, '0', packBytes('>I7', count))
elseif not since then
if newCountOf ~= count then
newCountOf, newStateOf = count, packBytes('>I7I6', count, start)
newLifeOf = format('%d', start + windowMs - now + slack)
end
call('SET', key_2, newStateOf, 'PX', newLifeOf)
else
call('SET', key_2, packBytes('>I7I6', count, start), 'PX', start + windowMs - now + slack)
end
end
end
local outcome = allowed and 1 or 0` },
  piece24,
  piece39,
  piece25,
  piece32,
  piece26,
  piece33,
  piece34,
] },
{ name: 'decide-counters', kind: 'counter', isShared: false, isJoint: true, pieces: [
  { sections: [], source: `local ARGV, KEYS = ARGV, KEYS
local tryCall = redis.pcall
local call, floor, max, min = redis.call, math.floor, math.max, math.min
local packBytes, unpackBytes = struct.pack, struct.unpack
local sub, rep, format, concat = string.sub, string.rep, string.format, table.concat
local elsewhere
local clock = ARGV[1]
local now
local slack = 0
if clock ~= '' then
now, slack = clock + 0, 3600000
else
local time = call('TIME')
now = time[1] * 1000 + floor(time[2] / 1000)
end
local reply, more, pieces = packBytes('>I6', now), nil, 0
local first = {}
local last = {}
local keyIndex, head = {}, {}
local costs, needs = {}, {}
local kept1 = {}
local kept2 = {}
local kept3 = {}
local joint, mine
local NO_REFUNDS = rep('\\0', 13)
local after, bytes = {}, {}
local cellsOf, endOf, storedOf = {}, {}, {}
local put, putRefunds, puts, putLife, tells = {}, {}, nil, nil, nil` },
  { sections: [], source: `local own, limit, windowMs, byClock
local most` },
  piece37,
  { sections: [], source: `local newCountOf, newStateOf, newLifeOf = {}, {}, {}
local count, start, since` },
  piece7,
  piece8,
  piece9,
  piece10,
  { sections: [], source: `local keys = 0
for c = 1, cells do
a = a + 1
local sharing = ARGV[a] + 0
if sharing < 2 then
keys = keys + 1
head[c] = sharing * c
else
head[c] = head[c - 1]
end
keyIndex[c] = keys
local params = ARGV[a + 1] + 0
first[c], last[c] = a + 2, a + 1 + params
a = a + 2 + params
for p = first[c], last[c] do
ARGV[p] = ARGV[p] + 0
end
newCountOf[c] = nil
if head[c] > 0 then
local first_2 = head[c]
if first_2 == c then
cellsOf[c], endOf[c] = 0, 6
end
after[c], bytes[c] = endOf[first_2], 13
cellsOf[first_2], endOf[first_2] = cellsOf[first_2] + 1, endOf[first_2] + 13
end
if cells == 1 then
local p = first[c]
own = c
limit, windowMs, byClock = ARGV[p], ARGV[p + 1], ARGV[p + 3] == 1
most = limit
if ARGV[p + 2] == 1 then
most = max(limit, min(2147483647, floor(9007199254740991 / windowMs)))
end` },
  piece40,
  { sections: [], source: `end
end
head[cells + 1] = 0` },
  piece11,
  piece12,
  piece13,
  piece14,
  piece15,
  piece16,
  piece17,
  piece18,
  piece29,
  piece19,
  { sections: [], source: `if ends > 0 then
if equals > 1 then
local piece = packBytes('>BI2I2', 8, equals, 0)
if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
end
local piece = packBytes('>BI7I2', 2, ends - now, #reason) .. reason
if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
elseif op < 3 then
local allowed, possible = true, true
local admitted = 1
for c = 1, cells do
if cells > 1 then
local p = first[c]
own = c
limit, windowMs, byClock = ARGV[p], ARGV[p + 1], ARGV[p + 3] == 1
most = limit
if ARGV[p + 2] == 1 then
most = max(limit, min(2147483647, floor(9007199254740991 / windowMs)))
end` },
  piece40,
  { sections: [], source: `end
local key = KEYS[cell + c]
key, joint, mine = KEYS[cell + keyIndex[c]], head[c], c
if joint == c then
local stored = tryCall('GET', key)
local length = stored and #stored
if length ~= endOf[joint] and length ~= endOf[joint] + 13 * cellsOf[joint] then
if type(stored) == 'table' and not string.match(stored.err, '^WRONGTYPE') then
if not string.match(stored.err, 'non local key') then
error(stored.err)
end
elsewhere = true
end
stored = false
end
storedOf[joint] = stored
end
local wait
local cost = needs[c]
local instant, isOver = now, true
since = nil
if joint > 0 then
count = 0
if storedOf[joint] then
count, since = unpackBytes('>I7I6', storedOf[joint], after[mine] + 1)
end
if count == 0 then
since = nil
end
else
local stored = tryCall('GET', key)
if stored and #stored == 13 then
count, since = unpackBytes('>I7I6', stored)
else
if type(stored) == 'table' and not string.match(stored.err, '^WRONGTYPE') then
if not string.match(stored.err, 'non local key') then
error(stored.err)
end
elsewhere = true
end
end
end
if since then
if since > now and since <= now + windowMs then
instant = since
else
instant = now
end
isOver = instant >= since + windowMs
end
if isOver then
count = 0
end
if not isOver and since <= instant then
start = since
else
if byClock then
start = floor(instant / windowMs) * windowMs
else
start = instant
end
end` },
  piece38,
  { sections: [], source: `local endsIn = start + windowMs - now
if cost > limit then
wait = -1
else
if count + cost <= limit or cost == 0 then
wait = 0
else
wait = endsIn
end
end
if wait ~= 0 or elsewhere then
allowed = false
end
if wait < 0 then
possible = false
end
if equals > 1 then
admitted = allowed and equals or 0
if allowed and costs[c] > 0 then
local units = limit - count
admitted = min(equals, floor((units - needs[c]) / costs[c]) + 1)
end
local piece = packBytes('>BI2I2', 8, equals, admitted)
if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
end
if cells > 1 then
kept1[c], kept2[c], kept3[c] = count, start, since
end
end` },
  piece22,
  piece30,
  piece23,
  { sections: [], source: `local charged = op ~= 1 and (allowed or op == 2 and possible)
for c = 1, cells do
local key, cost = KEYS[cell + c], costs[c]
key, joint, mine = KEYS[cell + keyIndex[c]], head[c], c
if joint > 0 then
if mine == joint then
puts, putLife = 0, 0
tells = storedOf[joint] and #storedOf[joint] > endOf[joint]
end
put[mine] = false
end
cost = cost * admitted
if cells > 1 then
local p = first[c]
own = c
limit, windowMs, byClock = ARGV[p], ARGV[p + 1], ARGV[p + 3] == 1
most = limit
if ARGV[p + 2] == 1 then
most = max(limit, min(2147483647, floor(9007199254740991 / windowMs)))
end` },
  piece40,
  { sections: [], source: `count, start, since = kept1[c], kept2[c], kept3[c]
end
if charged then
if cost > 0 then
count = max(count, most < count + cost and most or count + cost)
if joint > 0 then
local state, life = packBytes('>I7I6', count, start), count > 0 and start + windowMs - now or 0
put[mine], putRefunds[mine] = state, ''
puts, putLife = puts + 1, putLife > life and putLife or life
if '' ~= '' then
tells = true
end
else
if count == 0 then
call('DEL', key)
elseif since == start then
call('SETRANGE', key, '0', packBytes('>I7', count))
elseif not since then
if newCountOf[own] ~= count then
newCountOf[own], newStateOf[own] = count, packBytes('>I7I6', count, start)
newLifeOf[own] = format('%d', start + windowMs - now + slack)
end
call('SET', key, newStateOf[own], 'PX', newLifeOf[own])
else
call('SET', key, packBytes('>I7I6', count, start), 'PX', start + windowMs - now + slack)
end
end
end
elseif op == 0 then
if since and since > now + windowMs then
if joint > 0 then
local state, life = packBytes('>I7I6', count, start), count > 0 and start + windowMs - now or 0
put[mine], putRefunds[mine] = state, ''
puts, putLife = puts + 1, putLife > life and putLife or life
if '' ~= '' then
tells = true
end
else
if count == 0 then
call('DEL', key)
elseif since == start then
call('SETRANGE', key, '0', packBytes('>I7', count))
elseif not since then
if newCountOf[own] ~= count then
newCountOf[own], newStateOf[own] = count, packBytes('>I7I6', count, start)
newLifeOf[own] = format('%d', start + windowMs - now + slack)
end
call('SET', key, newStateOf[own], 'PX', newLifeOf[own])
else
call('SET', key, packBytes('>I7I6', count, start), 'PX', start + windowMs - now + slack)
end
end
end
end
if joint > 0 and head[c + 1] ~= joint then
local stored = storedOf[joint]
if puts > 0 and (stored or putLife > 0) then
if puts < cellsOf[joint] then
for c_2 = joint, mine do
if not put[c_2] then
put[c_2] = stored and sub(stored, after[c_2] + 1, after[c_2] + bytes[c_2]) or rep('\\0', bytes[c_2])
local joint_refunds_result
local stored_2, at = storedOf[joint], endOf[joint] + 13 * (c_2 - joint)
if not stored_2 or #stored_2 <= at then
joint_refunds_result = ''
else
local refunds = sub(stored_2, at + 1, at + 13)
if refunds == NO_REFUNDS then
joint_refunds_result = ''
else
joint_refunds_result = refunds
end
end
putRefunds[c_2] = joint_refunds_result
end
end
end
local value = concat(put, '', joint, mine)
if tells then
for c_2 = joint, mine do
value = value .. (putRefunds[c_2] == '' and NO_REFUNDS or putRefunds[c_2])
end
end
local ends_2, expires = now + (1 > putLife and 1 or putLife), stored and unpackBytes('>I6', stored) or 0
if putLife <= 0 and puts == cellsOf[joint] and not tells then
call('DEL', key)
elseif ends_2 <= expires then
call('SETRANGE', key, '6', value)
else
if stored then
ends_2 = ends_2 + (10000 < putLife and 10000 or putLife)
end
call('SET', key, packBytes('>I6', ends_2) .. value, 'PX', ends_2 - now + slack)
end
end
end
local outcome = allowed and 1 or 0` },
  piece24,
  piece39,
  piece25,
  piece21,
  piece32,
  piece26,
  piece33,
  piece35,
] },
{ name: 'decide-log', kind: 'log', isShared: false, isJoint: false, pieces: [
  { sections: [], source: `local ARGV, KEYS = ARGV, KEYS
local tryCall = redis.pcall
local call, floor, ceil, max, min = redis.call, math.floor, math.ceil, math.max, math.min
local packBytes, unpackBytes = struct.pack, struct.unpack
local sub, rep, format, concat = string.sub, string.rep, string.format, table.concat
local elsewhere
local clock = ARGV[1]
local now
local slack = 0
if clock ~= '' then
now, slack = clock + 0, 3600000
else
local time = call('TIME')
now = time[1] * 1000 + floor(time[2] / 1000)
end
local reply, more, pieces = packBytes('>I6', now), nil, 0
local first
local last
local costs
local needs
local params, most, longestMs
local firstLinger, linger
local widthOf
local entryOf
local baseOf
local headerEndOf
local newLogOf
local newLifeOf
local headOf
local knownOf
local knownCountOf
local base, headerEnd, width, near, entry, modulus, fixed, stride, limitFormat
local header, newest, expires, capacity, oldest, total, tail, instant, whole, moved
local source, chunk, chunkFrom
local stampedAt, stamp = nil, ''` },
  piece7,
  piece8,
  piece27,
  piece10,
  { sections: [], source: `local params_2 = ARGV[a + 1] + 0
first, last = a + 2, a + 1 + params_2
a = a + 2 + params_2
for p = first, last do
ARGV[p] = ARGV[p] + 0
end
local p = first
if ARGV[p + 1] <= 4294967296 then
widthOf, entryOf = 4, '>I4'
else
widthOf, entryOf = 6, '>I6'
end
baseOf = 23 + 4 * widthOf + (last - p - 1) / 2 * (7 + 4 * widthOf)
headerEndOf = format('%d', baseOf - 1)
newLogOf = nil
params = first
most, longestMs = ARGV[params], ARGV[params + 1]
firstLinger = floor(longestMs / 10)
linger = max(firstLinger, 10000 < longestMs and 10000 or longestMs)
base, headerEnd, width, entry = baseOf, headerEndOf, widthOf, entryOf
near = 4 * width
fixed, stride = 23 + near, 7 + near
if width == 4 then
modulus, limitFormat = 4294967296, '>I6BI4'
else
modulus, limitFormat = 281474976710656, '>I6BI6'
end` },
  piece11,
  piece12,
  piece13,
  piece28,
  piece15,
  piece16,
  piece17,
  piece18,
  piece29,
  piece19,
  { sections: [], source: `if ends > 0 then
if equals > 1 then
local piece = packBytes('>BI2I2', 8, equals, 0)
if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
end
local piece = packBytes('>BI7I2', 2, ends - now, #reason) .. reason
if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
elseif op < 3 then
local allowed, possible = true, true
local admitted = 1
local key = KEYS[cell + 1]
local wait
local cost = needs
header, whole, moved = tryCall('GETRANGE', key, '0', headerEnd), nil, 0
local unwritten
if #header < base then
if type(header) == 'table' and not string.match(header.err, '^WRONGTYPE') then
if not string.match(header.err, 'non local key') then
error(header.err)
end
elsewhere = true
end
expires = nil
else
newest, expires, capacity, total, unwritten = unpackBytes('>I6I6I4I6B', header)
local spare = expires - newest - longestMs
if spare < 0 or spare > linger then
expires = nil
end
end
if not expires then
newest, oldest, total, tail, instant = nil, 0, 0, '', now
headOf, knownOf = 0, ''
else
tail = sub(header, 24, 23 + unwritten * width)
if newest > now and newest <= now + longestMs then
instant = newest
else
instant = now
end
oldest = total
local at = fixed + 1
local head, known, low = unpackBytes(limitFormat, header, at)
headOf, knownOf, knownCountOf = head, nil, known
at = at + stride
oldest = oldest < head and oldest or head
if known == 0 or newest - (newest - low) % modulus <= instant - ARGV[params + 3] then
source = key
if whole then
chunk, chunkFrom = whole, oldest
else
local log_known_result
local known_2 = knownOf
if not known_2 then
local at_2 = fixed + 0 * stride + 7
known_2 = sub(header, at_2 + 1, at_2 + knownCountOf * width)
knownOf = known_2
end
log_known_result = known_2
chunk, chunkFrom = log_known_result, headOf
end
local head_2 = total
if total > oldest and newest > instant - ARGV[params + 3] then
local total_2, windowMs = total, ARGV[params + 3]
local low_2, high, step = head, total_2, 1
while low_2 < high do
local probe = low_2 + step - 1
if step == 0 or probe >= high then
probe, step = floor((low_2 + high) / 2), 0
end
local log_entry_result
local beyond = probe - chunkFrom - #chunk / width
if probe < chunkFrom or beyond >= 16 then
chunk, chunkFrom, beyond = '', probe, 0
end
if beyond >= 0 then
local log_read_result
local from, to = probe - beyond, total < probe + 16 and total or probe + 16
local inRing = total - #tail / width
local entries
local count = (to < inRing and to or inRing) - from
if count <= 0 then
entries = ''
else
local slot = from % capacity
local here = count < capacity - slot and count or capacity - slot
local entries_2 = call('GETRANGE', source, base + slot * width, base + (slot + here) * width - 1)
if here < count then
entries_2 = entries_2 .. call('GETRANGE', source, base, base + (count - here) * width - 1)
end
entries = entries_2
end
log_read_result = entries .. sub(tail, (0 > from - inRing and 0 or from - inRing) * width + 1, (0 > to - inRing and 0 or to - inRing) * width)
chunk = chunk .. log_read_result
end
log_entry_result = newest - (newest - unpackBytes(entry, chunk, (probe - chunkFrom) * width + 1)) % modulus
if log_entry_result > instant - windowMs then
high, step = probe, 0
else
low_2, step = probe + 1, step * 2
end
end
head_2 = low_2
end
local skip = (head_2 - chunkFrom) * width
local known_2 = sub(chunk, skip + 1, skip + near)
headOf, knownOf, moved = head_2, known_2, moved > 1 and moved or 1
end
if newest > now + longestMs then
newest = now
local entries = rep(packBytes(entry, now % modulus), total - oldest)
whole, oldest, total = entries, 0, #entries / width
newest = total > 0 and newest - (newest - unpackBytes(entry, entries, (total - 1) * width + 1)) % modulus or nil
local function log_advanceAll(key_2, at_2)
source = key_2
if whole then
chunk, chunkFrom = whole, oldest
else
local log_known_result
local known_2 = knownOf
if not known_2 then
local at_3 = fixed + 0 * stride + 7
known_2 = sub(header, at_3 + 1, at_3 + knownCountOf * width)
knownOf = known_2
end
log_known_result = known_2
chunk, chunkFrom = log_known_result, headOf
end
local head_2 = total
if total > oldest and newest > at_2 - ARGV[params + 3] then
local total_2, windowMs = total, ARGV[params + 3]
local low_2, high, step = oldest, total_2, 1
while low_2 < high do
local probe = low_2 + step - 1
if step == 0 or probe >= high then
probe, step = floor((low_2 + high) / 2), 0
end
local log_entry_result
local beyond = probe - chunkFrom - #chunk / width
if probe < chunkFrom or beyond >= 16 then
chunk, chunkFrom, beyond = '', probe, 0
end
if beyond >= 0 then
local log_read_result
local from, to = probe - beyond, total < probe + 16 and total or probe + 16
local inRing = total - #tail / width
local entries_2
local count = (to < inRing and to or inRing) - from
if count <= 0 then
entries_2 = ''
else
local slot = from % capacity
local here = count < capacity - slot and count or capacity - slot
local entries_3 = call('GETRANGE', source, base + slot * width, base + (slot + here) * width - 1)
if here < count then
entries_3 = entries_3 .. call('GETRANGE', source, base, base + (count - here) * width - 1)
end
entries_2 = entries_3
end
log_read_result = entries_2 .. sub(tail, (0 > from - inRing and 0 or from - inRing) * width + 1, (0 > to - inRing and 0 or to - inRing) * width)
chunk = chunk .. log_read_result
end
log_entry_result = newest - (newest - unpackBytes(entry, chunk, (probe - chunkFrom) * width + 1)) % modulus
if log_entry_result > at_2 - windowMs then
high, step = probe, 0
else
low_2, step = probe + 1, step * 2
end
end
head_2 = low_2
end
local skip = (head_2 - chunkFrom) * width
local known_2 = sub(chunk, skip + 1, skip + near)
headOf, knownOf, moved = head_2, known_2, moved > 1 and moved or 1
end
log_advanceAll(key, instant)
end
end
local wait_2 = 0
if cost > ARGV[params + 2] then
wait_2 = -1
end
if wait_2 == 0 and cost > 0 and total - headOf + cost > ARGV[params + 2] then
wait_2 = 1
end
wait = wait_2
if wait ~= 0 or elsewhere then
allowed = false
end
if wait < 0 then
possible = false
end
if equals > 1 then
admitted = allowed and equals or 0
if allowed and costs > 0 then
local units
local units_2 = most
local taken = total - (headOf or total)
units_2 = units_2 < ARGV[params + 2] - taken and units_2 or ARGV[params + 2] - taken
units = units_2
admitted = min(equals, floor((units - needs) / costs) + 1)
end
local piece = packBytes('>BI2I2', 8, equals, admitted)
if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
end` },
  piece22,
  piece30,
  piece23,
  { sections: [], source: `local charged = op ~= 1 and (allowed or op == 2 and possible)
local key_2, cost_2 = KEYS[cell + 1], costs
cost_2 = cost_2 * admitted
if charged then
if cost_2 > 0 then
local cost_3 = cost_2
if instant ~= stampedAt or #stamp ~= width then
stamp, stampedAt = packBytes(entry, instant % modulus), instant
end
if cost_3 == 1 and not expires then
local fresh = newLogOf
if not fresh then
local gap = rep('\\0', near - width)
fresh = packBytes('>I6I6I4I6Bc0c0', now, now + longestMs + firstLinger, 0, 1, 1, stamp, gap)
fresh = packBytes('>c0I6Bc0c0', fresh, 0, 1, stamp, gap)
newLogOf, newLifeOf = fresh, format('%d', longestMs + firstLinger + slack)
end
call('SET', key_2, fresh, 'PX', newLifeOf)
headOf, knownOf = 0, stamp
oldest, total, newest, tail = 0, 1, now, stamp
else
local added = stamp
if cost_3 > 1 then
added = rep(added, cost_3)
end
local kept, least = total, 0
if total + cost_3 - oldest > most then
kept = kept < headOf and kept or headOf
least = (kept < total - most and kept or total - most) + cost_3
kept = total
end
local was, known = headOf, knownCountOf
if knownOf then
known = #knownOf / width
end
local head = was > least and was or least
if head > was or known < 4 then
local log_known_result
local known_2 = knownOf
if not known_2 then
local at = fixed + 0 * stride + 7
known_2 = sub(header, at + 1, at + knownCountOf * width)
knownOf = known_2
end
log_known_result = known_2
local ahead = sub(log_known_result, (head - was) * width + 1)
if head + #ahead / width == total then
ahead = sub(ahead .. added, 1, near)
end
headOf, knownOf, moved = head, ahead, moved > 1 and moved or 1
end
kept = kept < head and kept or head
if kept > oldest then
local lapsed = kept - (total - #tail / width)
if lapsed > 0 then
tail = sub(tail, lapsed * width + 1)
end
end
if expires and not whole then
oldest = kept
local added_2 = added
tail, total, newest = tail .. added_2, total + cost_3, instant
local ends_2, count = newest + longestMs, total - oldest
local isLate = ends_2 > expires
if #tail > near and count > capacity or isLate and 4 * count < capacity then
local log_read_result
local inRing = total - #tail / width
local entries
local count_2 = (total < inRing and total or inRing) - oldest
if count_2 <= 0 then
entries = ''
else
local slot = oldest % capacity
local here = count_2 < capacity - slot and count_2 or capacity - slot
local entries_2 = call('GETRANGE', key_2, base + slot * width, base + (slot + here) * width - 1)
if here < count_2 then
entries_2 = entries_2 .. call('GETRANGE', key_2, base, base + (count_2 - here) * width - 1)
end
entries = entries_2
end
log_read_result = entries .. sub(tail, (0 > oldest - inRing and 0 or oldest - inRing) * width + 1, (0 > total - inRing and 0 or total - inRing) * width)
local function log_rewrite(key_3, entries_2, longer)
local known_2
local known_3 = knownOf
if not known_3 then
local at = fixed + 0 * stride + 7
known_3 = sub(header, at + 1, at + knownCountOf * width)
knownOf = known_3
end
known_2 = known_3
local head_2 = headOf - oldest
headOf, knownOf, moved = head_2, known_2, moved > 1 and moved or 1
oldest, total, capacity, tail = 0, total - oldest, 0, entries_2
if total > 4 then
capacity, tail = max(total, min(most, total + 5 * ceil(total / 20))), ''
end
if longer then
expires = newest + longestMs + longer
end
local value
if moved == 0 then
value = packBytes('>I6I6I4I6Bc0', newest, expires, capacity, total, #tail / width, tail)
else
local known_4
local known_5 = knownOf
if not known_5 then
local at = fixed + 0 * stride + 7
known_5 = sub(header, at + 1, at + knownCountOf * width)
knownOf = known_5
end
known_4 = known_5
local text = packBytes('>I6I6I4I6Bc0c0I6Bc0c0', newest, expires, capacity, total, #tail / width, tail, rep('\\0', near - #tail), headOf, #known_4 / width, known_4, rep('\\0', near - #known_4))
value = text
end
if total > 4 then
value = packBytes('c0c0c0', value, entries_2, rep('\\0', (capacity - total) * width))
end
if longer then
call('SET', key_3, value, 'PX', expires - now + slack)
else
call('SET', key_3, value, 'KEEPTTL')
end
end
log_rewrite(key_2, log_read_result, isLate and linger)
else
if #tail > near then
local from = total - #tail / width
local slot = from % capacity
local here = (capacity - slot) * width
call('SETRANGE', key_2, base + slot * width, sub(tail, 1, here))
if #tail > here then
call('SETRANGE', key_2, base, sub(tail, here + 1))
end
tail = ''
end
if isLate then
expires = ends_2 + linger
call('PEXPIRE', key_2, expires - now + slack)
end
local log_header_result
if moved == 0 then
log_header_result = packBytes('>I6I6I4I6Bc0', newest, expires, capacity, total, #tail / width, tail)
else
local known_2
local known_3 = knownOf
if not known_3 then
local at = fixed + 0 * stride + 7
known_3 = sub(header, at + 1, at + knownCountOf * width)
knownOf = known_3
end
known_2 = known_3
local text = packBytes('>I6I6I4I6Bc0c0I6Bc0c0', newest, expires, capacity, total, #tail / width, tail, rep('\\0', near - #tail), headOf, #known_2 / width, known_2, rep('\\0', near - #known_2))
log_header_result = text
end
call('SETRANGE', key_2, '0', log_header_result)
end
else
oldest, total, newest = kept, total + cost_3, instant
local function log_rewrite(key_3, entries, longer)
local known_2
local known_3 = knownOf
if not known_3 then
local at = fixed + 0 * stride + 7
known_3 = sub(header, at + 1, at + knownCountOf * width)
knownOf = known_3
end
known_2 = known_3
local head_2 = headOf - oldest
headOf, knownOf, moved = head_2, known_2, moved > 1 and moved or 1
oldest, total, capacity, tail = 0, total - oldest, 0, entries
if total > 4 then
capacity, tail = max(total, min(most, total + 5 * ceil(total / 20))), ''
end
if longer then
expires = newest + longestMs + longer
end
local value
if moved == 0 then
value = packBytes('>I6I6I4I6Bc0', newest, expires, capacity, total, #tail / width, tail)
else
local known_4
local known_5 = knownOf
if not known_5 then
local at = fixed + 0 * stride + 7
known_5 = sub(header, at + 1, at + knownCountOf * width)
knownOf = known_5
end
known_4 = known_5
local text = packBytes('>I6I6I4I6Bc0c0I6Bc0c0', newest, expires, capacity, total, #tail / width, tail, rep('\\0', near - #tail), headOf, #known_4 / width, known_4, rep('\\0', near - #known_4))
value = text
end
if total > 4 then
value = packBytes('c0c0c0', value, entries, rep('\\0', (capacity - total) * width))
end
if longer then
call('SET', key_3, value, 'PX', expires - now + slack)
else
call('SET', key_3, value, 'KEEPTTL')
end
end
log_rewrite(key_2, whole and sub(whole, kept * width + 1) .. added or added, firstLinger)
end
end
end
elseif op == 0 then
if whole then
if total == 0 or newest + longestMs + slack <= now then
call('DEL', key_2)
else
local function log_advanceAll(key_3, at)
source = key_3
if whole then
chunk, chunkFrom = whole, oldest
else
local log_known_result
local known = knownOf
if not known then
local at_2 = fixed + 0 * stride + 7
known = sub(header, at_2 + 1, at_2 + knownCountOf * width)
knownOf = known
end
log_known_result = known
chunk, chunkFrom = log_known_result, headOf
end
local head = total
if total > oldest and newest > at - ARGV[params + 3] then
local total_2, windowMs = total, ARGV[params + 3]
local low, high, step = oldest, total_2, 1
while low < high do
local probe = low + step - 1
if step == 0 or probe >= high then
probe, step = floor((low + high) / 2), 0
end
local log_entry_result
local beyond = probe - chunkFrom - #chunk / width
if probe < chunkFrom or beyond >= 16 then
chunk, chunkFrom, beyond = '', probe, 0
end
if beyond >= 0 then
local log_read_result
local from, to = probe - beyond, total < probe + 16 and total or probe + 16
local inRing = total - #tail / width
local entries
local count = (to < inRing and to or inRing) - from
if count <= 0 then
entries = ''
else
local slot = from % capacity
local here = count < capacity - slot and count or capacity - slot
local entries_2 = call('GETRANGE', source, base + slot * width, base + (slot + here) * width - 1)
if here < count then
entries_2 = entries_2 .. call('GETRANGE', source, base, base + (count - here) * width - 1)
end
entries = entries_2
end
log_read_result = entries .. sub(tail, (0 > from - inRing and 0 or from - inRing) * width + 1, (0 > to - inRing and 0 or to - inRing) * width)
chunk = chunk .. log_read_result
end
log_entry_result = newest - (newest - unpackBytes(entry, chunk, (probe - chunkFrom) * width + 1)) % modulus
if log_entry_result > at - windowMs then
high, step = probe, 0
else
low, step = probe + 1, step * 2
end
end
head = low
end
local skip = (head - chunkFrom) * width
local known = sub(chunk, skip + 1, skip + near)
headOf, knownOf, moved = head, known, moved > 1 and moved or 1
end
log_advanceAll(key_2, newest)
local function log_rewrite(key_3, entries, longer)
local known
local known_2 = knownOf
if not known_2 then
local at = fixed + 0 * stride + 7
known_2 = sub(header, at + 1, at + knownCountOf * width)
knownOf = known_2
end
known = known_2
local head = headOf - oldest
headOf, knownOf, moved = head, known, moved > 1 and moved or 1
oldest, total, capacity, tail = 0, total - oldest, 0, entries
if total > 4 then
capacity, tail = max(total, min(most, total + 5 * ceil(total / 20))), ''
end
if longer then
expires = newest + longestMs + longer
end
local value
if moved == 0 then
value = packBytes('>I6I6I4I6Bc0', newest, expires, capacity, total, #tail / width, tail)
else
local known_3
local known_4 = knownOf
if not known_4 then
local at = fixed + 0 * stride + 7
known_4 = sub(header, at + 1, at + knownCountOf * width)
knownOf = known_4
end
known_3 = known_4
local text = packBytes('>I6I6I4I6Bc0c0I6Bc0c0', newest, expires, capacity, total, #tail / width, tail, rep('\\0', near - #tail), headOf, #known_3 / width, known_3, rep('\\0', near - #known_3))
value = text
end
if total > 4 then
value = packBytes('c0c0c0', value, entries, rep('\\0', (capacity - total) * width))
end
if longer then
call('SET', key_3, value, 'PX', expires - now + slack)
else
call('SET', key_3, value, 'KEEPTTL')
end
end
log_rewrite(key_2, whole, 0)
log_advanceAll(key_2, instant)
end
end
end
local outcome = allowed and 1 or 0` },
  piece24,
  { sections: [], source: `for outcome_2 = outcome, admitted < equals and 0 or outcome, -1 do
local cost_3 = needs
local latest = newest and newest + 1 or 0
if outcome_2 == 1 then
local piece = packBytes('>BI6I6I4', outcome_2, instant, latest, total - (headOf or total))
if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
else
local piece = packBytes('>BI6I6', outcome_2, instant, latest)
if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
source = key_2
if whole then
chunk, chunkFrom = whole, oldest
else
local log_known_result
local known = knownOf
if not known then
local at = fixed + 0 * stride + 7
known = sub(header, at + 1, at + knownCountOf * width)
knownOf = known
end
log_known_result = known
chunk, chunkFrom = log_known_result, headOf
end
local fewer = -1
local head = headOf > total - ARGV[params + 2] and headOf or total - ARGV[params + 2]
if head < total then
local log_entry_result
local beyond = head - chunkFrom - #chunk / width
if head < chunkFrom or beyond >= 16 then
chunk, chunkFrom, beyond = '', head, 0
end
if beyond >= 0 then
local log_read_result
local from, to = head - beyond, total < head + 16 and total or head + 16
local inRing = total - #tail / width
local entries
local count = (to < inRing and to or inRing) - from
if count <= 0 then
entries = ''
else
local slot = from % capacity
local here = count < capacity - slot and count or capacity - slot
local entries_2 = call('GETRANGE', source, base + slot * width, base + (slot + here) * width - 1)
if here < count then
entries_2 = entries_2 .. call('GETRANGE', source, base, base + (count - here) * width - 1)
end
entries = entries_2
end
log_read_result = entries .. sub(tail, (0 > from - inRing and 0 or from - inRing) * width + 1, (0 > to - inRing and 0 or to - inRing) * width)
chunk = chunk .. log_read_result
end
log_entry_result = newest - (newest - unpackBytes(entry, chunk, (head - chunkFrom) * width + 1)) % modulus
fewer = log_entry_result + ARGV[params + 3] - now
end
local wait_3
local total_2, live, at, limit, windowMs = total, total - headOf, instant, ARGV[params + 2], ARGV[params + 3]
if cost_3 > limit then
wait_3 = -1
else
if live + cost_3 <= limit or cost_3 == 0 then
wait_3 = 0
else
local log_entry_result
local i = total_2 - (limit - cost_3 + 1)
local beyond = i - chunkFrom - #chunk / width
if i < chunkFrom or beyond >= 16 then
chunk, chunkFrom, beyond = '', i, 0
end
if beyond >= 0 then
local log_read_result
local from, to = i - beyond, total < i + 16 and total or i + 16
local inRing = total - #tail / width
local entries
local count = (to < inRing and to or inRing) - from
if count <= 0 then
entries = ''
else
local slot = from % capacity
local here = count < capacity - slot and count or capacity - slot
local entries_2 = call('GETRANGE', source, base + slot * width, base + (slot + here) * width - 1)
if here < count then
entries_2 = entries_2 .. call('GETRANGE', source, base, base + (count - here) * width - 1)
end
entries = entries_2
end
log_read_result = entries .. sub(tail, (0 > from - inRing and 0 or from - inRing) * width + 1, (0 > to - inRing and 0 or to - inRing) * width)
chunk = chunk .. log_read_result
end
log_entry_result = newest - (newest - unpackBytes(entry, chunk, (i - chunkFrom) * width + 1)) % modulus
wait_3 = log_entry_result + windowMs - at
end
end
if wait_3 > 0 then
wait_3 = wait_3 + instant - now
end
local piece_2 = packBytes('>I4I7I7', total - (headOf or total), wait_3 + 1, fewer + 1)
if pieces == 0 then
reply = reply .. piece_2
else
more = more or {}
more[pieces] = piece_2
end
pieces = pieces + 1
end
end` },
  piece25,
  piece32,
  piece26,
  piece33,
  piece34,
] },
{ name: 'decide-logs', kind: 'log', isShared: true, isJoint: false, pieces: [
  { sections: [], source: `local ARGV, KEYS = ARGV, KEYS
local tryCall = redis.pcall
local call, floor, ceil, max, min = redis.call, math.floor, math.ceil, math.max, math.min
local packBytes, unpackBytes = struct.pack, struct.unpack
local sub, rep, format, concat = string.sub, string.rep, string.format, table.concat
local elsewhere
local clock = ARGV[1]
local now
local slack = 0
if clock ~= '' then
now, slack = clock + 0, 3600000
else
local time = call('TIME')
now = time[1] * 1000 + floor(time[2] / 1000)
end
local reply, more, pieces = packBytes('>I6', now), nil, 0
local first
local last
local costs
local needs
local params, limits, most, longestMs
local firstLinger, linger
local widthOf
local entryOf
local baseOf
local headerEndOf
local newLogOf
local newLifeOf
local headOf, knownOf, knownCountOf = {}, {}, {}
local base, headerEnd, width, near, entry, modulus, fixed, stride, limitFormat
local header, newest, expires, capacity, oldest, total, tail, instant, whole, moved
local source, chunk, chunkFrom
local stampedAt, stamp = nil, ''` },
  piece7,
  piece8,
  piece27,
  piece10,
  { sections: [], source: `local params_2 = ARGV[a + 1] + 0
first, last = a + 2, a + 1 + params_2
a = a + 2 + params_2
for p = first, last do
ARGV[p] = ARGV[p] + 0
end
local p = first
if ARGV[p + 1] <= 4294967296 then
widthOf, entryOf = 4, '>I4'
else
widthOf, entryOf = 6, '>I6'
end
baseOf = 23 + 4 * widthOf + (last - p - 1) / 2 * (7 + 4 * widthOf)
headerEndOf = format('%d', baseOf - 1)
newLogOf = nil
params, limits = first, (last - first - 1) / 2
most, longestMs = ARGV[params], ARGV[params + 1]
firstLinger = floor(longestMs / 10)
linger = max(firstLinger, 10000 < longestMs and 10000 or longestMs)
base, headerEnd, width, entry = baseOf, headerEndOf, widthOf, entryOf
near = 4 * width
fixed, stride = 23 + near, 7 + near
if width == 4 then
modulus, limitFormat = 4294967296, '>I6BI4'
else
modulus, limitFormat = 281474976710656, '>I6BI6'
end` },
  piece11,
  piece12,
  piece13,
  piece28,
  piece15,
  piece16,
  piece17,
  piece18,
  piece29,
  piece19,
  { sections: [], source: `if ends > 0 then
if equals > 1 then
local piece = packBytes('>BI2I2', 8, equals, 0)
if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
end
local piece = packBytes('>BI7I2', 2, ends - now, #reason) .. reason
if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
elseif op < 3 then
local allowed, possible = true, true
local admitted = 1
local key = KEYS[cell + 1]
local wait
local cost = needs
header, whole, moved = tryCall('GETRANGE', key, '0', headerEnd), nil, 0
local unwritten
if #header < base then
if type(header) == 'table' and not string.match(header.err, '^WRONGTYPE') then
if not string.match(header.err, 'non local key') then
error(header.err)
end
elsewhere = true
end
expires = nil
else
newest, expires, capacity, total, unwritten = unpackBytes('>I6I6I4I6B', header)
local spare = expires - newest - longestMs
if spare < 0 or spare > linger then
expires = nil
end
end
if not expires then
newest, oldest, total, tail, instant = nil, 0, 0, '', now
for l = 1, limits do
headOf[l], knownOf[l] = 0, ''
end
else
tail = sub(header, 24, 23 + unwritten * width)
if newest > now and newest <= now + longestMs then
instant = newest
else
instant = now
end
oldest = total
local at = fixed + 1
for l = 1, limits do
local head, known, low = unpackBytes(limitFormat, header, at)
headOf[l], knownOf[l], knownCountOf[l] = head, nil, known
at = at + stride
oldest = oldest < head and oldest or head
if known == 0 or newest - (newest - low) % modulus <= instant - ARGV[params + 2 * l + 1] then
source = key
if whole then
chunk, chunkFrom = whole, oldest
else
local log_known_result
local known_2 = knownOf[l]
if not known_2 then
local at_2 = fixed + (l - 1) * stride + 7
known_2 = sub(header, at_2 + 1, at_2 + knownCountOf[l] * width)
knownOf[l] = known_2
end
log_known_result = known_2
chunk, chunkFrom = log_known_result, headOf[l]
end
local head_2 = total
if total > oldest and newest > instant - ARGV[params + 2 * l + 1] then
local total_2, windowMs = total, ARGV[params + 2 * l + 1]
local low_2, high, step = head, total_2, 1
while low_2 < high do
local probe = low_2 + step - 1
if step == 0 or probe >= high then
probe, step = floor((low_2 + high) / 2), 0
end
local log_entry_result
local beyond = probe - chunkFrom - #chunk / width
if probe < chunkFrom or beyond >= 16 then
chunk, chunkFrom, beyond = '', probe, 0
end
if beyond >= 0 then
local log_read_result
local from, to = probe - beyond, total < probe + 16 and total or probe + 16
local inRing = total - #tail / width
local entries
local count = (to < inRing and to or inRing) - from
if count <= 0 then
entries = ''
else
local slot = from % capacity
local here = count < capacity - slot and count or capacity - slot
local entries_2 = call('GETRANGE', source, base + slot * width, base + (slot + here) * width - 1)
if here < count then
entries_2 = entries_2 .. call('GETRANGE', source, base, base + (count - here) * width - 1)
end
entries = entries_2
end
log_read_result = entries .. sub(tail, (0 > from - inRing and 0 or from - inRing) * width + 1, (0 > to - inRing and 0 or to - inRing) * width)
chunk = chunk .. log_read_result
end
log_entry_result = newest - (newest - unpackBytes(entry, chunk, (probe - chunkFrom) * width + 1)) % modulus
if log_entry_result > instant - windowMs then
high, step = probe, 0
else
low_2, step = probe + 1, step * 2
end
end
head_2 = low_2
end
local skip = (head_2 - chunkFrom) * width
local known_2 = sub(chunk, skip + 1, skip + near)
headOf[l], knownOf[l], moved = head_2, known_2, moved > l and moved or l
end
end
if newest > now + longestMs then
newest = now
local entries = rep(packBytes(entry, now % modulus), total - oldest)
whole, oldest, total = entries, 0, #entries / width
newest = total > 0 and newest - (newest - unpackBytes(entry, entries, (total - 1) * width + 1)) % modulus or nil
local function log_advanceAll(key_2, at_2)
for l = 1, limits do
source = key_2
if whole then
chunk, chunkFrom = whole, oldest
else
local log_known_result
local known = knownOf[l]
if not known then
local at_3 = fixed + (l - 1) * stride + 7
known = sub(header, at_3 + 1, at_3 + knownCountOf[l] * width)
knownOf[l] = known
end
log_known_result = known
chunk, chunkFrom = log_known_result, headOf[l]
end
local head = total
if total > oldest and newest > at_2 - ARGV[params + 2 * l + 1] then
local total_2, windowMs = total, ARGV[params + 2 * l + 1]
local low, high, step = oldest, total_2, 1
while low < high do
local probe = low + step - 1
if step == 0 or probe >= high then
probe, step = floor((low + high) / 2), 0
end
local log_entry_result
local beyond = probe - chunkFrom - #chunk / width
if probe < chunkFrom or beyond >= 16 then
chunk, chunkFrom, beyond = '', probe, 0
end
if beyond >= 0 then
local log_read_result
local from, to = probe - beyond, total < probe + 16 and total or probe + 16
local inRing = total - #tail / width
local entries_2
local count = (to < inRing and to or inRing) - from
if count <= 0 then
entries_2 = ''
else
local slot = from % capacity
local here = count < capacity - slot and count or capacity - slot
local entries_3 = call('GETRANGE', source, base + slot * width, base + (slot + here) * width - 1)
if here < count then
entries_3 = entries_3 .. call('GETRANGE', source, base, base + (count - here) * width - 1)
end
entries_2 = entries_3
end
log_read_result = entries_2 .. sub(tail, (0 > from - inRing and 0 or from - inRing) * width + 1, (0 > to - inRing and 0 or to - inRing) * width)
chunk = chunk .. log_read_result
end
log_entry_result = newest - (newest - unpackBytes(entry, chunk, (probe - chunkFrom) * width + 1)) % modulus
if log_entry_result > at_2 - windowMs then
high, step = probe, 0
else
low, step = probe + 1, step * 2
end
end
head = low
end
local skip = (head - chunkFrom) * width
local known = sub(chunk, skip + 1, skip + near)
headOf[l], knownOf[l], moved = head, known, moved > l and moved or l
end
end
log_advanceAll(key, instant)
end
end
local wait_2 = 0
for l = 1, limits do
if cost > ARGV[params + 2 * l] then
wait_2 = -1
end
if wait_2 == 0 and cost > 0 and total - headOf[l] + cost > ARGV[params + 2 * l] then
wait_2 = 1
end
end
wait = wait_2
if wait ~= 0 or elsewhere then
allowed = false
end
if wait < 0 then
possible = false
end
if equals > 1 then
admitted = allowed and equals or 0
if allowed and costs > 0 then
local units
local units_2 = most
for l = 1, limits do
local taken = total - (headOf[l] or total)
units_2 = units_2 < ARGV[params + 2 * l] - taken and units_2 or ARGV[params + 2 * l] - taken
end
units = units_2
admitted = min(equals, floor((units - needs) / costs) + 1)
end
local piece = packBytes('>BI2I2', 8, equals, admitted)
if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
end` },
  piece22,
  piece30,
  piece23,
  { sections: [], source: `local charged = op ~= 1 and (allowed or op == 2 and possible)
local key_2, cost_2 = KEYS[cell + 1], costs
cost_2 = cost_2 * admitted
if charged then
if cost_2 > 0 then
local cost_3 = cost_2
if instant ~= stampedAt or #stamp ~= width then
stamp, stampedAt = packBytes(entry, instant % modulus), instant
end
if cost_3 == 1 and not expires then
local fresh = newLogOf
if not fresh then
local gap = rep('\\0', near - width)
fresh = packBytes('>I6I6I4I6Bc0c0', now, now + longestMs + firstLinger, 0, 1, 1, stamp, gap)
for __4 = 1, limits do
fresh = packBytes('>c0I6Bc0c0', fresh, 0, 1, stamp, gap)
end
newLogOf, newLifeOf = fresh, format('%d', longestMs + firstLinger + slack)
end
call('SET', key_2, fresh, 'PX', newLifeOf)
for l = 1, limits do
headOf[l], knownOf[l] = 0, stamp
end
oldest, total, newest, tail = 0, 1, now, stamp
else
local added = stamp
if cost_3 > 1 then
added = rep(added, cost_3)
end
local kept, least = total, 0
if total + cost_3 - oldest > most then
for l = 1, limits do
kept = kept < headOf[l] and kept or headOf[l]
end
least = (kept < total - most and kept or total - most) + cost_3
kept = total
end
for l = 1, limits do
local was, known = headOf[l], knownCountOf[l]
if knownOf[l] then
known = #knownOf[l] / width
end
local head = was > least and was or least
if head > was or known < 4 then
local log_known_result
local known_2 = knownOf[l]
if not known_2 then
local at = fixed + (l - 1) * stride + 7
known_2 = sub(header, at + 1, at + knownCountOf[l] * width)
knownOf[l] = known_2
end
log_known_result = known_2
local ahead = sub(log_known_result, (head - was) * width + 1)
if head + #ahead / width == total then
ahead = sub(ahead .. added, 1, near)
end
headOf[l], knownOf[l], moved = head, ahead, moved > l and moved or l
end
kept = kept < head and kept or head
end
if kept > oldest then
local lapsed = kept - (total - #tail / width)
if lapsed > 0 then
tail = sub(tail, lapsed * width + 1)
end
end
if expires and not whole then
oldest = kept
local added_2 = added
tail, total, newest = tail .. added_2, total + cost_3, instant
local ends_2, count = newest + longestMs, total - oldest
local isLate = ends_2 > expires
if #tail > near and count > capacity or isLate and 4 * count < capacity then
local log_read_result
local inRing = total - #tail / width
local entries
local count_2 = (total < inRing and total or inRing) - oldest
if count_2 <= 0 then
entries = ''
else
local slot = oldest % capacity
local here = count_2 < capacity - slot and count_2 or capacity - slot
local entries_2 = call('GETRANGE', key_2, base + slot * width, base + (slot + here) * width - 1)
if here < count_2 then
entries_2 = entries_2 .. call('GETRANGE', key_2, base, base + (count_2 - here) * width - 1)
end
entries = entries_2
end
log_read_result = entries .. sub(tail, (0 > oldest - inRing and 0 or oldest - inRing) * width + 1, (0 > total - inRing and 0 or total - inRing) * width)
local function log_rewrite(key_3, entries_2, longer)
for l = 1, limits do
local known
local known_2 = knownOf[l]
if not known_2 then
local at = fixed + (l - 1) * stride + 7
known_2 = sub(header, at + 1, at + knownCountOf[l] * width)
knownOf[l] = known_2
end
known = known_2
local head = headOf[l] - oldest
headOf[l], knownOf[l], moved = head, known, moved > l and moved or l
end
oldest, total, capacity, tail = 0, total - oldest, 0, entries_2
if total > 4 then
capacity, tail = max(total, min(most, total + 5 * ceil(total / 20))), ''
end
if longer then
expires = newest + longestMs + longer
end
local value
if moved == 0 then
value = packBytes('>I6I6I4I6Bc0', newest, expires, capacity, total, #tail / width, tail)
else
local known
local known_2 = knownOf[1]
if not known_2 then
local at = fixed + 0 * stride + 7
known_2 = sub(header, at + 1, at + knownCountOf[1] * width)
knownOf[1] = known_2
end
known = known_2
local text = packBytes('>I6I6I4I6Bc0c0I6Bc0c0', newest, expires, capacity, total, #tail / width, tail, rep('\\0', near - #tail), headOf[1], #known / width, known, rep('\\0', near - #known))
for l = 2, limits do
if l <= moved then
local known_3 = knownOf[l]
if not known_3 then
local at = fixed + (l - 1) * stride + 7
known_3 = sub(header, at + 1, at + knownCountOf[l] * width)
knownOf[l] = known_3
end
known = known_3
text = packBytes('>c0I6Bc0c0', text, headOf[l], #known / width, known, rep('\\0', near - #known))
end
end
value = text
end
if total > 4 then
value = packBytes('c0c0c0', value, entries_2, rep('\\0', (capacity - total) * width))
end
if longer then
call('SET', key_3, value, 'PX', expires - now + slack)
else
call('SET', key_3, value, 'KEEPTTL')
end
end
log_rewrite(key_2, log_read_result, isLate and linger)
else
if #tail > near then
local from = total - #tail / width
local slot = from % capacity
local here = (capacity - slot) * width
call('SETRANGE', key_2, base + slot * width, sub(tail, 1, here))
if #tail > here then
call('SETRANGE', key_2, base, sub(tail, here + 1))
end
tail = ''
end
if isLate then
expires = ends_2 + linger
call('PEXPIRE', key_2, expires - now + slack)
end
local log_header_result
if moved == 0 then
log_header_result = packBytes('>I6I6I4I6Bc0', newest, expires, capacity, total, #tail / width, tail)
else
local known
local known_2 = knownOf[1]
if not known_2 then
local at = fixed + 0 * stride + 7
known_2 = sub(header, at + 1, at + knownCountOf[1] * width)
knownOf[1] = known_2
end
known = known_2
local text = packBytes('>I6I6I4I6Bc0c0I6Bc0c0', newest, expires, capacity, total, #tail / width, tail, rep('\\0', near - #tail), headOf[1], #known / width, known, rep('\\0', near - #known))
for l = 2, limits do
if l <= moved then
local known_3 = knownOf[l]
if not known_3 then
local at = fixed + (l - 1) * stride + 7
known_3 = sub(header, at + 1, at + knownCountOf[l] * width)
knownOf[l] = known_3
end
known = known_3
text = packBytes('>c0I6Bc0c0', text, headOf[l], #known / width, known, rep('\\0', near - #known))
end
end
log_header_result = text
end
call('SETRANGE', key_2, '0', log_header_result)
end
else
oldest, total, newest = kept, total + cost_3, instant
local function log_rewrite(key_3, entries, longer)
for l = 1, limits do
local known
local known_2 = knownOf[l]
if not known_2 then
local at = fixed + (l - 1) * stride + 7
known_2 = sub(header, at + 1, at + knownCountOf[l] * width)
knownOf[l] = known_2
end
known = known_2
local head = headOf[l] - oldest
headOf[l], knownOf[l], moved = head, known, moved > l and moved or l
end
oldest, total, capacity, tail = 0, total - oldest, 0, entries
if total > 4 then
capacity, tail = max(total, min(most, total + 5 * ceil(total / 20))), ''
end
if longer then
expires = newest + longestMs + longer
end
local value
if moved == 0 then
value = packBytes('>I6I6I4I6Bc0', newest, expires, capacity, total, #tail / width, tail)
else
local known
local known_2 = knownOf[1]
if not known_2 then
local at = fixed + 0 * stride + 7
known_2 = sub(header, at + 1, at + knownCountOf[1] * width)
knownOf[1] = known_2
end
known = known_2
local text = packBytes('>I6I6I4I6Bc0c0I6Bc0c0', newest, expires, capacity, total, #tail / width, tail, rep('\\0', near - #tail), headOf[1], #known / width, known, rep('\\0', near - #known))
for l = 2, limits do
if l <= moved then
local known_3 = knownOf[l]
if not known_3 then
local at = fixed + (l - 1) * stride + 7
known_3 = sub(header, at + 1, at + knownCountOf[l] * width)
knownOf[l] = known_3
end
known = known_3
text = packBytes('>c0I6Bc0c0', text, headOf[l], #known / width, known, rep('\\0', near - #known))
end
end
value = text
end
if total > 4 then
value = packBytes('c0c0c0', value, entries, rep('\\0', (capacity - total) * width))
end
if longer then
call('SET', key_3, value, 'PX', expires - now + slack)
else
call('SET', key_3, value, 'KEEPTTL')
end
end
log_rewrite(key_2, whole and sub(whole, kept * width + 1) .. added or added, firstLinger)
end
end
end
elseif op == 0 then
if whole then
if total == 0 or newest + longestMs + slack <= now then
call('DEL', key_2)
else
local function log_advanceAll(key_3, at)
for l = 1, limits do
source = key_3
if whole then
chunk, chunkFrom = whole, oldest
else
local log_known_result
local known = knownOf[l]
if not known then
local at_2 = fixed + (l - 1) * stride + 7
known = sub(header, at_2 + 1, at_2 + knownCountOf[l] * width)
knownOf[l] = known
end
log_known_result = known
chunk, chunkFrom = log_known_result, headOf[l]
end
local head = total
if total > oldest and newest > at - ARGV[params + 2 * l + 1] then
local total_2, windowMs = total, ARGV[params + 2 * l + 1]
local low, high, step = oldest, total_2, 1
while low < high do
local probe = low + step - 1
if step == 0 or probe >= high then
probe, step = floor((low + high) / 2), 0
end
local log_entry_result
local beyond = probe - chunkFrom - #chunk / width
if probe < chunkFrom or beyond >= 16 then
chunk, chunkFrom, beyond = '', probe, 0
end
if beyond >= 0 then
local log_read_result
local from, to = probe - beyond, total < probe + 16 and total or probe + 16
local inRing = total - #tail / width
local entries
local count = (to < inRing and to or inRing) - from
if count <= 0 then
entries = ''
else
local slot = from % capacity
local here = count < capacity - slot and count or capacity - slot
local entries_2 = call('GETRANGE', source, base + slot * width, base + (slot + here) * width - 1)
if here < count then
entries_2 = entries_2 .. call('GETRANGE', source, base, base + (count - here) * width - 1)
end
entries = entries_2
end
log_read_result = entries .. sub(tail, (0 > from - inRing and 0 or from - inRing) * width + 1, (0 > to - inRing and 0 or to - inRing) * width)
chunk = chunk .. log_read_result
end
log_entry_result = newest - (newest - unpackBytes(entry, chunk, (probe - chunkFrom) * width + 1)) % modulus
if log_entry_result > at - windowMs then
high, step = probe, 0
else
low, step = probe + 1, step * 2
end
end
head = low
end
local skip = (head - chunkFrom) * width
local known = sub(chunk, skip + 1, skip + near)
headOf[l], knownOf[l], moved = head, known, moved > l and moved or l
end
end
log_advanceAll(key_2, newest)
local function log_rewrite(key_3, entries, longer)
for l = 1, limits do
local known
local known_2 = knownOf[l]
if not known_2 then
local at = fixed + (l - 1) * stride + 7
known_2 = sub(header, at + 1, at + knownCountOf[l] * width)
knownOf[l] = known_2
end
known = known_2
local head = headOf[l] - oldest
headOf[l], knownOf[l], moved = head, known, moved > l and moved or l
end
oldest, total, capacity, tail = 0, total - oldest, 0, entries
if total > 4 then
capacity, tail = max(total, min(most, total + 5 * ceil(total / 20))), ''
end
if longer then
expires = newest + longestMs + longer
end
local value
if moved == 0 then
value = packBytes('>I6I6I4I6Bc0', newest, expires, capacity, total, #tail / width, tail)
else
local known
local known_2 = knownOf[1]
if not known_2 then
local at = fixed + 0 * stride + 7
known_2 = sub(header, at + 1, at + knownCountOf[1] * width)
knownOf[1] = known_2
end
known = known_2
local text = packBytes('>I6I6I4I6Bc0c0I6Bc0c0', newest, expires, capacity, total, #tail / width, tail, rep('\\0', near - #tail), headOf[1], #known / width, known, rep('\\0', near - #known))
for l = 2, limits do
if l <= moved then
local known_3 = knownOf[l]
if not known_3 then
local at = fixed + (l - 1) * stride + 7
known_3 = sub(header, at + 1, at + knownCountOf[l] * width)
knownOf[l] = known_3
end
known = known_3
text = packBytes('>c0I6Bc0c0', text, headOf[l], #known / width, known, rep('\\0', near - #known))
end
end
value = text
end
if total > 4 then
value = packBytes('c0c0c0', value, entries, rep('\\0', (capacity - total) * width))
end
if longer then
call('SET', key_3, value, 'PX', expires - now + slack)
else
call('SET', key_3, value, 'KEEPTTL')
end
end
log_rewrite(key_2, whole, 0)
log_advanceAll(key_2, instant)
end
end
end
local outcome = allowed and 1 or 0` },
  piece24,
  { sections: [], source: `for outcome_2 = outcome, admitted < equals and 0 or outcome, -1 do
local cost_3 = needs
local latest = newest and newest + 1 or 0
if outcome_2 == 1 then
local piece = packBytes('>BI6I6I4', outcome_2, instant, latest, total - (headOf[1] or total))
if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
for l = 2, limits, 3 do
local counts = packBytes('>I4I4I4', total - (headOf[l] or total), total - (headOf[l + 1] or total), total - (headOf[l + 2] or total))
if limits < l + 2 then
counts = sub(counts, 1, (limits - l + 1) * 4)
end
if pieces == 0 then
reply = reply .. counts
else
more = more or {}
more[pieces] = counts
end
pieces = pieces + 1
end
else
local piece = packBytes('>BI6I6', outcome_2, instant, latest)
if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
for l = 1, limits do
source = key_2
if whole then
chunk, chunkFrom = whole, oldest
else
local log_known_result
local known = knownOf[l]
if not known then
local at = fixed + (l - 1) * stride + 7
known = sub(header, at + 1, at + knownCountOf[l] * width)
knownOf[l] = known
end
log_known_result = known
chunk, chunkFrom = log_known_result, headOf[l]
end
local fewer = -1
local head = headOf[l] > total - ARGV[params + 2 * l] and headOf[l] or total - ARGV[params + 2 * l]
if head < total then
local log_entry_result
local beyond = head - chunkFrom - #chunk / width
if head < chunkFrom or beyond >= 16 then
chunk, chunkFrom, beyond = '', head, 0
end
if beyond >= 0 then
local log_read_result
local from, to = head - beyond, total < head + 16 and total or head + 16
local inRing = total - #tail / width
local entries
local count = (to < inRing and to or inRing) - from
if count <= 0 then
entries = ''
else
local slot = from % capacity
local here = count < capacity - slot and count or capacity - slot
local entries_2 = call('GETRANGE', source, base + slot * width, base + (slot + here) * width - 1)
if here < count then
entries_2 = entries_2 .. call('GETRANGE', source, base, base + (count - here) * width - 1)
end
entries = entries_2
end
log_read_result = entries .. sub(tail, (0 > from - inRing and 0 or from - inRing) * width + 1, (0 > to - inRing and 0 or to - inRing) * width)
chunk = chunk .. log_read_result
end
log_entry_result = newest - (newest - unpackBytes(entry, chunk, (head - chunkFrom) * width + 1)) % modulus
fewer = log_entry_result + ARGV[params + 2 * l + 1] - now
end
local wait_3
local total_2, live, at, limit, windowMs = total, total - headOf[l], instant, ARGV[params + 2 * l], ARGV[params + 2 * l + 1]
if cost_3 > limit then
wait_3 = -1
else
if live + cost_3 <= limit or cost_3 == 0 then
wait_3 = 0
else
local log_entry_result
local i = total_2 - (limit - cost_3 + 1)
local beyond = i - chunkFrom - #chunk / width
if i < chunkFrom or beyond >= 16 then
chunk, chunkFrom, beyond = '', i, 0
end
if beyond >= 0 then
local log_read_result
local from, to = i - beyond, total < i + 16 and total or i + 16
local inRing = total - #tail / width
local entries
local count = (to < inRing and to or inRing) - from
if count <= 0 then
entries = ''
else
local slot = from % capacity
local here = count < capacity - slot and count or capacity - slot
local entries_2 = call('GETRANGE', source, base + slot * width, base + (slot + here) * width - 1)
if here < count then
entries_2 = entries_2 .. call('GETRANGE', source, base, base + (count - here) * width - 1)
end
entries = entries_2
end
log_read_result = entries .. sub(tail, (0 > from - inRing and 0 or from - inRing) * width + 1, (0 > to - inRing and 0 or to - inRing) * width)
chunk = chunk .. log_read_result
end
log_entry_result = newest - (newest - unpackBytes(entry, chunk, (i - chunkFrom) * width + 1)) % modulus
wait_3 = log_entry_result + windowMs - at
end
end
if wait_3 > 0 then
wait_3 = wait_3 + instant - now
end
local piece_2 = packBytes('>I4I7I7', total - (headOf[l] or total), wait_3 + 1, fewer + 1)
if pieces == 0 then
reply = reply .. piece_2
else
more = more or {}
more[pieces] = piece_2
end
pieces = pieces + 1
end
end
end` },
  piece25,
  piece32,
  piece26,
  piece33,
  piece34,
] },
{ name: 'decide-segments', kind: 'segments', isShared: false, isJoint: false, pieces: [
  { sections: [], source: `local ARGV, KEYS = ARGV, KEYS
local tryCall = redis.pcall
local call, floor, ceil, max, min = redis.call, math.floor, math.ceil, math.max, math.min
local packBytes, unpackBytes = struct.pack, struct.unpack
local sub, rep, concat = string.sub, string.rep, table.concat
local elsewhere
local clock = ARGV[1]
local now
local slack = 0
if clock ~= '' then
now, slack = clock + 0, 3600000
else
local time = call('TIME')
now = time[1] * 1000 + floor(time[2] / 1000)
end
local reply, more, pieces = packBytes('>I6', now), nil, 0
local first
local last
local costs
local needs
local limit, windowMs, segments, edge, segmentMs, width, counter
local withRefusals, most
local widthOf
local counterOf
local mostOf
local counts, total, segment, offset, instant, newest` },
  piece7,
  piece8,
  piece27,
  piece10,
  { sections: [], source: `local params = ARGV[a + 1] + 0
first, last = a + 2, a + 1 + params
a = a + 2 + params
for p = first, last do
ARGV[p] = ARGV[p] + 0
end
local p = first
local bytes, top, limit_2, isWide = 1, 256, ARGV[p], ARGV[p + 3] >= 8
if isWide then
bytes = limit_2 > 2147483647 and 7 or 4
end
if ARGV[p + 3] >= 4 then
limit_2 = max(limit_2, min(2147483647, floor(9007199254740991 / ARGV[p + 1])))
end
while not isWide and top <= limit_2 do
bytes = bytes + 1
top = top * 256
end
widthOf, counterOf, mostOf = bytes, '>I' .. bytes, limit_2
local p_2 = first
limit, windowMs, segments, edge = ARGV[p_2], ARGV[p_2 + 1], ARGV[p_2 + 2], ARGV[p_2 + 3]
segmentMs, width, counter, most = windowMs / segments, widthOf, counterOf, mostOf
if edge >= 8 then
edge = edge - 8
end
withRefusals = edge >= 4
if withRefusals then
edge = edge - 4
end` },
  piece11,
  piece12,
  piece13,
  piece36,
  piece15,
  piece16,
  piece17,
  piece18,
  piece29,
  piece19,
  { sections: [], source: `if ends > 0 then
local piece = packBytes('>BI7I2', 2, ends - now, #reason) .. reason
if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
elseif op < 3 then
local allowed, possible = true, true
local key = KEYS[cell + 1]
local wait
local cost = needs
local stored = tryCall('GET', key)
if stored and #stored ~= 6 + (segments + 2) * width then
if type(stored) == 'table' and not string.match(stored.err, '^WRONGTYPE') then
if not string.match(stored.err, 'non local key') then
error(stored.err)
end
elsewhere = true
end
stored = false
end
newest, instant = nil, now
if stored then
newest = unpackBytes('>I6', stored, 1)
local at = newest * segmentMs
if at > now and at <= now + windowMs then
instant = at
else
instant = now
end
end
segment = floor(instant / segmentMs)
offset = instant - segment * segmentMs
local by = stored and (0 > segment - newest and 0 or segment - newest) or segments + 1
if by > segments then
total, counts = 0, rep('\\0', (segments + 1) * width)
else
total, counts = unpackBytes(counter, stored, 7), sub(stored, 7 + width, 6 + (segments + 2) * width)
if by > 0 then
local window_leaving_result
local units = 0
for k = 0 > segments - by and 0 or segments - by, segments - 1 do
units = units + (unpackBytes(counter, counts, k * width + 1))
end
window_leaving_result = units
total = total - window_leaving_result
counts = rep('\\0', by * width) .. sub(counts, 1, (segments + 1 - by) * width)
end
end
if newest and newest * segmentMs > now + windowMs then
if edge < 2 then
else
local units = (unpackBytes(counter, counts, segments * width + 1))
counts = sub(counts, 1, segments * width) .. rep('\\0', width)
local k, units_2 = segments - 1, max(0, units < most - total and units or most - total)
local count = packBytes(counter, (unpackBytes(counter, counts, k * width + 1)) + units_2)
counts = sub(counts, 1, k * width) .. count .. sub(counts, (k + 1) * width + 1)
if k < segments then
total = total + units_2
end
end
end
local wait_2
if cost > limit then
wait_2 = -1
else
if cost == 0 then
wait_2 = 0
else
local inside, wait_3 = total, (segments + 1) * segmentMs - offset
for by_2 = 0, segments do
if by_2 > 0 then
inside = inside - (unpackBytes(counter, counts, (segments - by_2) * width + 1))
end
if inside + cost <= limit then
local count = (unpackBytes(counter, counts, (segments - by_2) * width + 1))
local from
local room = limit - cost - inside
if edge == 1 or count <= room then
from = 0
else
if edge == 0 then
from = segmentMs
else
if edge == 2 then
from = floor(segmentMs * (count - room - 1) / count) + 1
else
from = ceil(segmentMs * (count - room) / count)
end
end
end
if from < segmentMs then
wait_3 = 0 > by_2 * segmentMs + from - offset and 0 or by_2 * segmentMs + from - offset
break
end
end
end
wait_2 = wait_3
end
end
if wait_2 > 0 then
wait = wait_2 + instant - now
else
wait = wait_2
end
if wait ~= 0 or elsewhere then
allowed = false
end
if wait < 0 then
possible = false
end` },
  piece22,
  piece30,
  piece23,
  { sections: [], source: `local charged = op ~= 1 and (allowed or op == 2 and possible)
local key_2, cost_2 = KEYS[cell + 1], costs
if charged then
if cost_2 > 0 then
local room
if withRefusals then
room = 0 > most - total and 0 or most - total
else
local window_edgeUnits_result
local count = (unpackBytes(counter, counts, segments * width + 1))
if edge == 0 then
window_edgeUnits_result = count
else
if edge == 1 then
window_edgeUnits_result = 0
else
local share = count * (segmentMs - offset) / segmentMs
if edge == 2 then
window_edgeUnits_result = floor(share)
else
window_edgeUnits_result = ceil(share)
end
end
end
room = 0 > limit - total - window_edgeUnits_result and 0 or limit - total - window_edgeUnits_result
end
local units = cost_2 < room and cost_2 or room
local count = packBytes(counter, (unpackBytes(counter, counts, 0 * width + 1)) + units)
counts = sub(counts, 1, 0 * width) .. count .. sub(counts, 1 * width + 1)
if 0 < segments then
total = total + units
end
local isNewest = newest == segment
if isNewest then
call('SETRANGE', key_2, '6', packBytes(counter, total) .. sub(counts, 1, width))
else
local segments_reset_result
local reset
local reset_2 = 0
for k = 0, segments do
local count_2 = (unpackBytes(counter, counts, k * width + 1))
if count_2 > 0 then
local window_offsetFor_result
if edge == 1 or count_2 <= 0 then
window_offsetFor_result = 0
else
if edge == 0 then
window_offsetFor_result = segmentMs
else
if edge == 2 then
window_offsetFor_result = floor(segmentMs * (count_2 - 1) / count_2) + 1
else
window_offsetFor_result = ceil(segmentMs * (count_2 - 0) / count_2)
end
end
end
reset_2 = 0 > (segments - k) * segmentMs + window_offsetFor_result - offset and 0 or (segments - k) * segmentMs + window_offsetFor_result - offset
break
end
end
reset = reset_2
if reset > 0 then
segments_reset_result = reset + instant - now
else
segments_reset_result = 0
end
if segments_reset_result > 0 then
call('SET', key_2, packBytes('>I6', segment) .. packBytes(counter, total) .. counts, 'PX', windowMs + segmentMs - offset + instant - now + slack)
elseif newest then
call('DEL', key_2)
end
end
end
elseif op == 0 then
if newest and newest * segmentMs > now + windowMs then
local segments_reset_result
local reset
local reset_2 = 0
for k = 0, segments do
local count = (unpackBytes(counter, counts, k * width + 1))
if count > 0 then
local window_offsetFor_result
if edge == 1 or count <= 0 then
window_offsetFor_result = 0
else
if edge == 0 then
window_offsetFor_result = segmentMs
else
if edge == 2 then
window_offsetFor_result = floor(segmentMs * (count - 1) / count) + 1
else
window_offsetFor_result = ceil(segmentMs * (count - 0) / count)
end
end
end
reset_2 = 0 > (segments - k) * segmentMs + window_offsetFor_result - offset and 0 or (segments - k) * segmentMs + window_offsetFor_result - offset
break
end
end
reset = reset_2
if reset > 0 then
segments_reset_result = reset + instant - now
else
segments_reset_result = 0
end
if segments_reset_result > 0 then
call('SET', key_2, packBytes('>I6', segment) .. packBytes(counter, total) .. counts, 'PX', windowMs + segmentMs - offset + instant - now + slack)
elseif newest then
call('DEL', key_2)
end
end
end
local outcome = allowed and 1 or 0` },
  piece24,
  { sections: [], source: `local cost_3 = needs
local window_edgeUnits_result
local count = (unpackBytes(counter, counts, segments * width + 1))
if edge == 0 then
window_edgeUnits_result = count
else
if edge == 1 then
window_edgeUnits_result = 0
else
local share = count * (segmentMs - offset) / segmentMs
if edge == 2 then
window_edgeUnits_result = floor(share)
else
window_edgeUnits_result = ceil(share)
end
end
end
local room = 0 > limit - total - window_edgeUnits_result and 0 or limit - total - window_edgeUnits_result
local segments_reset_result
local reset
local reset_2 = 0
for k = 0, segments do
local count_2 = (unpackBytes(counter, counts, k * width + 1))
if count_2 > 0 then
local window_offsetFor_result
if edge == 1 or count_2 <= 0 then
window_offsetFor_result = 0
else
if edge == 0 then
window_offsetFor_result = segmentMs
else
if edge == 2 then
window_offsetFor_result = floor(segmentMs * (count_2 - 1) / count_2) + 1
else
window_offsetFor_result = ceil(segmentMs * (count_2 - 0) / count_2)
end
end
end
reset_2 = 0 > (segments - k) * segmentMs + window_offsetFor_result - offset and 0 or (segments - k) * segmentMs + window_offsetFor_result - offset
break
end
end
reset = reset_2
if reset > 0 then
segments_reset_result = reset + instant - now
else
segments_reset_result = 0
end
local piece = packBytes('>BI7I7I6', outcome, room, segments_reset_result, segment)
if pieces == 0 then
reply = reply .. piece
else
more = more or {}
more[pieces] = piece
end
pieces = pieces + 1
if outcome == 0 then
local segments_wait_result
local wait_3
if cost_3 > limit then
wait_3 = -1
else
if cost_3 == 0 then
wait_3 = 0
else
local inside, wait_4 = total, (segments + 1) * segmentMs - offset
for by_2 = 0, segments do
if by_2 > 0 then
inside = inside - (unpackBytes(counter, counts, (segments - by_2) * width + 1))
end
if inside + cost_3 <= limit then
local count_2 = (unpackBytes(counter, counts, (segments - by_2) * width + 1))
local from
local room_2 = limit - cost_3 - inside
if edge == 1 or count_2 <= room_2 then
from = 0
else
if edge == 0 then
from = segmentMs
else
if edge == 2 then
from = floor(segmentMs * (count_2 - room_2 - 1) / count_2) + 1
else
from = ceil(segmentMs * (count_2 - room_2) / count_2)
end
end
end
if from < segmentMs then
wait_4 = 0 > by_2 * segmentMs + from - offset and 0 or by_2 * segmentMs + from - offset
break
end
end
end
wait_3 = wait_4
end
end
if wait_3 > 0 then
segments_wait_result = wait_3 + instant - now
else
segments_wait_result = wait_3
end
local segments_wait_result_2
local cost_4 = room + 1
local wait_4
if cost_4 > limit then
wait_4 = -1
else
if cost_4 == 0 then
wait_4 = 0
else
local inside, wait_5 = total, (segments + 1) * segmentMs - offset
for by_2 = 0, segments do
if by_2 > 0 then
inside = inside - (unpackBytes(counter, counts, (segments - by_2) * width + 1))
end
if inside + cost_4 <= limit then
local count_2 = (unpackBytes(counter, counts, (segments - by_2) * width + 1))
local from
local room_2 = limit - cost_4 - inside
if edge == 1 or count_2 <= room_2 then
from = 0
else
if edge == 0 then
from = segmentMs
else
if edge == 2 then
from = floor(segmentMs * (count_2 - room_2 - 1) / count_2) + 1
else
from = ceil(segmentMs * (count_2 - room_2) / count_2)
end
end
end
if from < segmentMs then
wait_5 = 0 > by_2 * segmentMs + from - offset and 0 or by_2 * segmentMs + from - offset
break
end
end
end
wait_4 = wait_5
end
end
if wait_4 > 0 then
segments_wait_result_2 = wait_4 + instant - now
else
segments_wait_result_2 = wait_4
end
local piece_2 = packBytes('>I7I7', segments_wait_result + 1, segments_wait_result_2 + 1)
if pieces == 0 then
reply = reply .. piece_2
else
more = more or {}
more[pieces] = piece_2
end
pieces = pieces + 1
end` },
  piece25,
  piece32,
  piece26,
  piece33,
  piece34,
] },
]

/** Scripts for one charge of one cell, but for the line that declares its parameters. */
export const ONE_SCRIPTS: readonly KindScript[] = [
{ name: 'one-bucket', kind: 'bucket', isShared: false, isJoint: false, pieces: [
  { sections: [], source: `local given, KEYS = ARGV, KEYS
local tryCall = redis.pcall
local call, floor, ceil, min = redis.call, math.floor, math.ceil, math.min
local packBytes, unpackBytes = struct.pack, struct.unpack
local format = string.format
local ARGV1, ARGV2, ARGV3, ARGV4 = P1, P2, P3, P4
local clock = given[2] or ''
local now
local slack = 0
if clock ~= '' then
now, slack = clock + 0, 3600000
else
local time = call('TIME')
now = time[1] * 1000 + floor(time[2] / 1000)
end
local reply = packBytes('>I6', now)
local limit, windowMs, capacity, stepMs
local newDebtOf
local newStateOf
local newLifeOf
local debt, instant, since, expires, refunds
local pace, beyond
if tryCall('GET', KEYS[1]) then
return ''
end` },
  piece41,
  { sections: [], source: `local cost, key = (given[1] or 1) + 0, KEYS[2]
newDebtOf = nil
limit, windowMs, capacity, stepMs = ARGV1, ARGV2, ARGV3, ARGV4
local outcome = 0
local look_result
local stored = tryCall('GET', key)
local bytes = stored and #stored
if bytes == 19 or bytes == 32 then
if bytes == 19 then
debt, since, expires = unpackBytes('>I7I6I6', stored)
refunds = ''
else
debt, since, expires, refunds = unpackBytes('>I7I6I6c13', stored)
end
if since > now and since <= now + windowMs then
instant = since
else
instant = now
end
local bucket_paceOf_result
if debt <= 2 * (limit > capacity and limit or capacity) * windowMs then
bucket_paceOf_result = limit
else
bucket_paceOf_result = ceil(debt / (2 * windowMs))
end
pace, beyond = bucket_paceOf_result, nil
if pace ~= limit then
beyond = debt
end
local bucket_atPace_result
if pace == limit then
bucket_atPace_result = debt
else
bucket_atPace_result = pace * 2 * windowMs
end
local debt_2, since_2 = bucket_atPace_result, since < instant and since or instant
local elapsed
if stepMs == 1 then
elapsed = instant - since_2
else
elapsed = floor(instant / stepMs) * stepMs - floor(since_2 / stepMs) * stepMs
end
debt = 0 > debt_2 - elapsed * pace and 0 or debt_2 - elapsed * pace
else
if type(stored) == 'table' and not string.match(stored.err, '^WRONGTYPE') then
if not string.match(stored.err, 'non local key') then
error(stored.err)
end
end
debt, instant, since, expires, refunds = 0, now, nil, nil, ''
pace, beyond = limit, nil
end
if cost > capacity then
look_result = -1
else
local excess = debt - (capacity - cost) * windowMs
if excess <= 0 or cost < (1 < capacity and 1 or capacity) then
look_result = 0
else
local steps = ceil(excess / (pace * stepMs))
look_result = (floor(instant / stepMs) + steps) * stepMs - instant
end
end
if look_result == 0 then
outcome = 1
if debt > capacity * windowMs then
if since and since > now + windowMs then
if debt == 0 and refunds == '' then
call('DEL', key)
else
local bucket_wait_result
local wait
local excess = debt - (capacity - capacity) * windowMs
if excess <= 0 or capacity < (1 < capacity and 1 or capacity) then
wait = 0
else
local steps = ceil(excess / (pace * stepMs))
wait = (floor(instant / stepMs) + steps) * stepMs - instant
end
if wait > 0 then
bucket_wait_result = wait + instant - now
else
bucket_wait_result = wait
end
local ends = now + (1 > bucket_wait_result and 1 or bucket_wait_result)
if ends <= expires then
local state = packBytes('>I7I6', debt, instant)
if refunds ~= '' then
state = packBytes('>I7I6I6', debt, instant, expires) .. refunds
end
call('SETRANGE', key, '0', state)
else
ends = ends + min(10000, ceil(capacity * windowMs / limit))
call('SET', key, packBytes('>I7I6I6', debt, instant, ends) .. refunds, 'PX', ends - now + slack)
end
end
end
else
debt = capacity * windowMs < debt + cost * windowMs and capacity * windowMs or debt + cost * windowMs
pace, beyond = limit, nil
if since then
if debt == 0 and refunds == '' then
call('DEL', key)
else
local bucket_wait_result
local wait
local excess = debt - (capacity - capacity) * windowMs
if excess <= 0 or capacity < (1 < capacity and 1 or capacity) then
wait = 0
else
local steps = ceil(excess / (pace * stepMs))
wait = (floor(instant / stepMs) + steps) * stepMs - instant
end
if wait > 0 then
bucket_wait_result = wait + instant - now
else
bucket_wait_result = wait
end
local ends = now + (1 > bucket_wait_result and 1 or bucket_wait_result)
if ends <= expires then
local state = packBytes('>I7I6', debt, instant)
if refunds ~= '' then
state = packBytes('>I7I6I6', debt, instant, expires) .. refunds
end
call('SETRANGE', key, '0', state)
else
ends = ends + min(10000, ceil(capacity * windowMs / limit))
call('SET', key, packBytes('>I7I6I6', debt, instant, ends) .. refunds, 'PX', ends - now + slack)
end
end
else
if newDebtOf ~= debt then
local life
local wait
local excess = debt - (capacity - capacity) * windowMs
if excess <= 0 or capacity < (1 < capacity and 1 or capacity) then
wait = 0
else
local steps = ceil(excess / (pace * stepMs))
wait = (floor(instant / stepMs) + steps) * stepMs - instant
end
if wait > 0 then
life = wait + instant - now
else
life = wait
end
newDebtOf, newStateOf = debt, packBytes('>I7I6I6', debt, now, now + life)
newLifeOf = format('%d', life + slack)
end
call('SET', key, newStateOf, 'PX', newLifeOf)
end
end
else
if since and since > now + windowMs then
if debt == 0 and refunds == '' then
call('DEL', key)
else
local bucket_wait_result
local wait
local excess = debt - (capacity - capacity) * windowMs
if excess <= 0 or capacity < (1 < capacity and 1 or capacity) then
wait = 0
else
local steps = ceil(excess / (pace * stepMs))
wait = (floor(instant / stepMs) + steps) * stepMs - instant
end
if wait > 0 then
bucket_wait_result = wait + instant - now
else
bucket_wait_result = wait
end
local ends = now + (1 > bucket_wait_result and 1 or bucket_wait_result)
if ends <= expires then
local state = packBytes('>I7I6', debt, instant)
if refunds ~= '' then
state = packBytes('>I7I6I6', debt, instant, expires) .. refunds
end
call('SETRANGE', key, '0', state)
else
ends = ends + min(10000, ceil(capacity * windowMs / limit))
call('SET', key, packBytes('>I7I6I6', debt, instant, ends) .. refunds, 'PX', ends - now + slack)
end
end
end
end
local said = outcome
if refunds ~= '' then
said = outcome + 4
end
if beyond then
local piece = packBytes('>BI7I6', said, beyond, since < instant and since or instant) .. refunds
reply = reply .. piece
else
local piece = packBytes('>BI7I6', said, debt, instant) .. refunds
reply = reply .. piece
end` },
  piece42,
  piece43,
] },
{ name: 'one-concurrency', kind: 'concurrency', isShared: false, isJoint: false, pieces: [
  { sections: [], source: `local given, KEYS = ARGV, KEYS
local tryCall = redis.pcall
local call, floor, min = redis.call, math.floor, math.min
local packBytes = struct.pack
local format = string.format
local ARGV1, ARGV2 = P1, P2
local clock = given[2] or ''
local now
local slack = 0
if clock ~= '' then
now, slack = clock + 0, 3600000
else
local time = call('TIME')
now = time[1] * 1000 + floor(time[2] / 1000)
end
local reply = packBytes('>I6', now)
local limit, ttlMs
local held, isForeign
local nowText = format('%.0f', now)
if tryCall('GET', KEYS[1]) then
return ''
end` },
  piece41,
  { sections: [], source: `local cost, key = (given[1] or 1) + 0, KEYS[2]
limit, ttlMs = ARGV1, ARGV2
local outcome = 0
local look_result
local count = tryCall('ZCOUNT', key, '(' .. nowText, '+inf')
if type(count) == 'table' and not string.match(count.err, '^WRONGTYPE') then
if not string.match(count.err, 'non local key') then
error(count.err)
end
end
isForeign = type(count) == 'table'
held = isForeign and 0 or count
if cost > limit then
look_result = -1
else
local missing = held + cost - limit
if cost == 0 or missing <= 0 then
look_result = 0
else
local concurrency_endAt_result
local rank = missing - 1 - held
local permit = call('ZRANGE', key, rank, rank, 'WITHSCORES')
concurrency_endAt_result = permit[2] and min(tonumber(permit[2]), now + ttlMs) or now
look_result = concurrency_endAt_result - now
end
end
if look_result == 0 then
outcome = 1
local permitId = given[3]
if isForeign then
call('DEL', key)
end
for nth = 0, cost - 1 do
call('ZADD', key, now + ttlMs, permitId .. '.' .. nth)
end
local expiry = tryCall('PEXPIRE', key, ttlMs + slack)
if type(expiry) == 'table' then
for nth = 0, cost - 1 do
call('ZREM', key, permitId .. '.' .. nth)
end
error(expiry.err)
end
held = held + cost
if call('ZCARD', key) > held then
call('ZREMRANGEBYSCORE', key, '-inf', nowText)
end
else
if isForeign then
else
local latest = now + ttlMs
for _, permit in ipairs(call('ZRANGEBYSCORE', key, '(' .. format('%.0f', latest), '+inf')) do
call('ZADD', key, latest, permit)
end
end
end
local ends = now
if held > 0 then
local rank = -1
local permit = call('ZRANGE', key, rank, rank, 'WITHSCORES')
ends = permit[2] and min(tonumber(permit[2]), now + ttlMs) or now
end
local free = 0 > limit - held and 0 or limit - held
local piece = packBytes('>BI7I7', outcome, free, ends - now)
reply = reply .. piece
if outcome == 0 then
local wait
if cost > limit then
wait = -1
else
local missing = held + cost - limit
if cost == 0 or missing <= 0 then
wait = 0
else
local concurrency_endAt_result
local rank = missing - 1 - held
local permit = call('ZRANGE', key, rank, rank, 'WITHSCORES')
concurrency_endAt_result = permit[2] and min(tonumber(permit[2]), now + ttlMs) or now
wait = concurrency_endAt_result - now
end
end
local room = -1
if wait == 0 then
local cost_2 = free + 1
if cost_2 > limit then
room = -1
else
local missing = held + cost_2 - limit
if cost_2 == 0 or missing <= 0 then
room = 0
else
local concurrency_endAt_result
local rank = missing - 1 - held
local permit = call('ZRANGE', key, rank, rank, 'WITHSCORES')
concurrency_endAt_result = permit[2] and min(tonumber(permit[2]), now + ttlMs) or now
room = concurrency_endAt_result - now
end
end
end
local piece_2 = packBytes('>I7I7', wait + 1, room + 1)
reply = reply .. piece_2
end` },
  piece42,
  piece43,
] },
{ name: 'one-counter', kind: 'counter', isShared: false, isJoint: false, pieces: [
  { sections: [], source: `local given, KEYS = ARGV, KEYS
local tryCall = redis.pcall
local call, floor, max, min = redis.call, math.floor, math.max, math.min
local packBytes, unpackBytes = struct.pack, struct.unpack
local format = string.format
local ARGV1, ARGV2, ARGV3, ARGV4 = P1, P2, P3, P4
local clock = given[2] or ''
local now
local slack = 0
if clock ~= '' then
now, slack = clock + 0, 3600000
else
local time = call('TIME')
now = time[1] * 1000 + floor(time[2] / 1000)
end
local reply = packBytes('>I6', now)
local limit, windowMs, byClock
local most
local newCountOf
local newStateOf
local newLifeOf
local count, start, since
if tryCall('GET', KEYS[1]) then
return ''
end` },
  piece41,
  { sections: [], source: `local cost, key = (given[1] or 1) + 0, KEYS[2]
newCountOf = nil
limit, windowMs, byClock = ARGV1, ARGV2, ARGV4 == 1
most = limit
if ARGV3 == 1 then
most = max(limit, min(2147483647, floor(9007199254740991 / windowMs)))
end
local outcome = 0
local look_result
local instant, isOver = now, true
since = nil
local stored = tryCall('GET', key)
if stored and #stored == 13 then
count, since = unpackBytes('>I7I6', stored)
else
if type(stored) == 'table' and not string.match(stored.err, '^WRONGTYPE') then
if not string.match(stored.err, 'non local key') then
error(stored.err)
end
end
end
if since then
if since > now and since <= now + windowMs then
instant = since
else
instant = now
end
isOver = instant >= since + windowMs
end
if isOver then
count = 0
end
if not isOver and since <= instant then
start = since
else
if byClock then
start = floor(instant / windowMs) * windowMs
else
start = instant
end
end
local endsIn = start + windowMs - now
if cost > limit then
look_result = -1
else
if count + cost <= limit or cost == 0 then
look_result = 0
else
look_result = endsIn
end
end
if look_result == 0 then
outcome = 1
count = max(count, most < count + cost and most or count + cost)
if count == 0 then
call('DEL', key)
elseif since == start then
call('SETRANGE', key, '0', packBytes('>I7', count))
elseif not since then
if newCountOf ~= count then
newCountOf, newStateOf = count, packBytes('>I7I6', count, start)
newLifeOf = format('%d', start + windowMs - now + slack)
end
call('SET', key, newStateOf, 'PX', newLifeOf)
else
call('SET', key, packBytes('>I7I6', count, start), 'PX', start + windowMs - now + slack)
end
else
if since and since > now + windowMs then
if count == 0 then
call('DEL', key)
elseif since == start then
call('SETRANGE', key, '0', packBytes('>I7', count))
elseif not since then
if newCountOf ~= count then
newCountOf, newStateOf = count, packBytes('>I7I6', count, start)
newLifeOf = format('%d', start + windowMs - now + slack)
end
call('SET', key, newStateOf, 'PX', newLifeOf)
else
call('SET', key, packBytes('>I7I6', count, start), 'PX', start + windowMs - now + slack)
end
end
end
local piece = packBytes('>BI7I6', outcome, count, start)
reply = reply .. piece` },
  piece42,
  piece43,
] },
{ name: 'one-log', kind: 'log', isShared: false, isJoint: false, pieces: [
  { sections: [], source: `local given, KEYS = ARGV, KEYS
local tryCall = redis.pcall
local call, floor, ceil, max, min = redis.call, math.floor, math.ceil, math.max, math.min
local packBytes, unpackBytes = struct.pack, struct.unpack
local sub, rep, format = string.sub, string.rep, string.format
local ARGV1, ARGV2, ARGV3, ARGV4 = P1, P2, P3, P4
local clock = given[2] or ''
local now
local slack = 0
if clock ~= '' then
now, slack = clock + 0, 3600000
else
local time = call('TIME')
now = time[1] * 1000 + floor(time[2] / 1000)
end
local reply = packBytes('>I6', now)
local most, longestMs
local firstLinger, linger
local widthOf
local entryOf
local baseOf
local headerEndOf
local newLogOf
local newLifeOf
local headOf
local knownOf
local knownCountOf
local base, headerEnd, width, near, entry, modulus, fixed, stride, limitFormat
local header, newest, expires, capacity, oldest, total, tail, instant, whole, moved
local source, chunk, chunkFrom
local stampedAt, stamp = nil, ''
if tryCall('GET', KEYS[1]) then
return ''
end` },
  piece41,
  { sections: [], source: `local cost, key = (given[1] or 1) + 0, KEYS[2]
if ARGV2 <= 4294967296 then
widthOf, entryOf = 4, '>I4'
else
widthOf, entryOf = 6, '>I6'
end
baseOf = 23 + 4 * widthOf + 2 / 2 * (7 + 4 * widthOf)
headerEndOf = format('%d', baseOf - 1)
newLogOf = nil
most, longestMs = ARGV1, ARGV2
firstLinger = floor(longestMs / 10)
linger = max(firstLinger, 10000 < longestMs and 10000 or longestMs)
base, headerEnd, width, entry = baseOf, headerEndOf, widthOf, entryOf
near = 4 * width
fixed, stride = 23 + near, 7 + near
if width == 4 then
modulus, limitFormat = 4294967296, '>I6BI4'
else
modulus, limitFormat = 281474976710656, '>I6BI6'
end
local outcome = 0
local look_result
header, whole, moved = tryCall('GETRANGE', key, '0', headerEnd), nil, 0
local unwritten
if #header < base then
if type(header) == 'table' and not string.match(header.err, '^WRONGTYPE') then
if not string.match(header.err, 'non local key') then
error(header.err)
end
end
expires = nil
else
newest, expires, capacity, total, unwritten = unpackBytes('>I6I6I4I6B', header)
local spare = expires - newest - longestMs
if spare < 0 or spare > linger then
expires = nil
end
end
if not expires then
newest, oldest, total, tail, instant = nil, 0, 0, '', now
headOf, knownOf = 0, ''
else
tail = sub(header, 24, 23 + unwritten * width)
if newest > now and newest <= now + longestMs then
instant = newest
else
instant = now
end
oldest = total
local at = fixed + 1
local head, known, low = unpackBytes(limitFormat, header, at)
headOf, knownOf, knownCountOf = head, nil, known
at = at + stride
oldest = oldest < head and oldest or head
if known == 0 or newest - (newest - low) % modulus <= instant - ARGV4 then
source = key
if whole then
chunk, chunkFrom = whole, oldest
else
local log_known_result
local known_2 = knownOf
if not known_2 then
local at_2 = fixed + 0 * stride + 7
known_2 = sub(header, at_2 + 1, at_2 + knownCountOf * width)
knownOf = known_2
end
log_known_result = known_2
chunk, chunkFrom = log_known_result, headOf
end
local head_2 = total
if total > oldest and newest > instant - ARGV4 then
local total_2 = total
local low_2, high, step = head, total_2, 1
while low_2 < high do
local probe = low_2 + step - 1
if step == 0 or probe >= high then
probe, step = floor((low_2 + high) / 2), 0
end
local log_entry_result
local beyond = probe - chunkFrom - #chunk / width
if probe < chunkFrom or beyond >= 16 then
chunk, chunkFrom, beyond = '', probe, 0
end
if beyond >= 0 then
local log_read_result
local from, to = probe - beyond, total < probe + 16 and total or probe + 16
local inRing = total - #tail / width
local entries
local count = (to < inRing and to or inRing) - from
if count <= 0 then
entries = ''
else
local slot = from % capacity
local here = count < capacity - slot and count or capacity - slot
local entries_2 = call('GETRANGE', source, base + slot * width, base + (slot + here) * width - 1)
if here < count then
entries_2 = entries_2 .. call('GETRANGE', source, base, base + (count - here) * width - 1)
end
entries = entries_2
end
log_read_result = entries .. sub(tail, (0 > from - inRing and 0 or from - inRing) * width + 1, (0 > to - inRing and 0 or to - inRing) * width)
chunk = chunk .. log_read_result
end
log_entry_result = newest - (newest - unpackBytes(entry, chunk, (probe - chunkFrom) * width + 1)) % modulus
if log_entry_result > instant - ARGV4 then
high, step = probe, 0
else
low_2, step = probe + 1, step * 2
end
end
head_2 = low_2
end
local skip = (head_2 - chunkFrom) * width
local known_2 = sub(chunk, skip + 1, skip + near)
headOf, knownOf, moved = head_2, known_2, moved > 1 and moved or 1
end
if newest > now + longestMs then
newest = now
local entries = rep(packBytes(entry, now % modulus), total - oldest)
whole, oldest, total = entries, 0, #entries / width
newest = total > 0 and newest - (newest - unpackBytes(entry, entries, (total - 1) * width + 1)) % modulus or nil
local function log_advanceAll(key_2, at_2)
source = key_2
if whole then
chunk, chunkFrom = whole, oldest
else
local log_known_result
local known_2 = knownOf
if not known_2 then
local at_3 = fixed + 0 * stride + 7
known_2 = sub(header, at_3 + 1, at_3 + knownCountOf * width)
knownOf = known_2
end
log_known_result = known_2
chunk, chunkFrom = log_known_result, headOf
end
local head_2 = total
if total > oldest and newest > at_2 - ARGV4 then
local total_2 = total
local low_2, high, step = oldest, total_2, 1
while low_2 < high do
local probe = low_2 + step - 1
if step == 0 or probe >= high then
probe, step = floor((low_2 + high) / 2), 0
end
local log_entry_result
local beyond = probe - chunkFrom - #chunk / width
if probe < chunkFrom or beyond >= 16 then
chunk, chunkFrom, beyond = '', probe, 0
end
if beyond >= 0 then
local log_read_result
local from, to = probe - beyond, total < probe + 16 and total or probe + 16
local inRing = total - #tail / width
local entries_2
local count = (to < inRing and to or inRing) - from
if count <= 0 then
entries_2 = ''
else
local slot = from % capacity
local here = count < capacity - slot and count or capacity - slot
local entries_3 = call('GETRANGE', source, base + slot * width, base + (slot + here) * width - 1)
if here < count then
entries_3 = entries_3 .. call('GETRANGE', source, base, base + (count - here) * width - 1)
end
entries_2 = entries_3
end
log_read_result = entries_2 .. sub(tail, (0 > from - inRing and 0 or from - inRing) * width + 1, (0 > to - inRing and 0 or to - inRing) * width)
chunk = chunk .. log_read_result
end
log_entry_result = newest - (newest - unpackBytes(entry, chunk, (probe - chunkFrom) * width + 1)) % modulus
if log_entry_result > at_2 - ARGV4 then
high, step = probe, 0
else
low_2, step = probe + 1, step * 2
end
end
head_2 = low_2
end
local skip = (head_2 - chunkFrom) * width
local known_2 = sub(chunk, skip + 1, skip + near)
headOf, knownOf, moved = head_2, known_2, moved > 1 and moved or 1
end
log_advanceAll(key, instant)
end
end
local wait = 0
if cost > ARGV3 then
wait = -1
end
if wait == 0 and cost > 0 and total - headOf + cost > ARGV3 then
wait = 1
end
look_result = wait
if look_result == 0 then
outcome = 1
if instant ~= stampedAt or #stamp ~= width then
stamp, stampedAt = packBytes(entry, instant % modulus), instant
end
if cost == 1 and not expires then
local fresh = newLogOf
if not fresh then
local gap = rep('\\0', near - width)
fresh = packBytes('>I6I6I4I6Bc0c0', now, now + longestMs + firstLinger, 0, 1, 1, stamp, gap)
fresh = packBytes('>c0I6Bc0c0', fresh, 0, 1, stamp, gap)
newLogOf, newLifeOf = fresh, format('%d', longestMs + firstLinger + slack)
end
call('SET', key, fresh, 'PX', newLifeOf)
headOf, knownOf = 0, stamp
oldest, total, newest, tail = 0, 1, now, stamp
else
local added = stamp
if cost > 1 then
added = rep(added, cost)
end
local kept, least = total, 0
if total + cost - oldest > most then
kept = kept < headOf and kept or headOf
least = (kept < total - most and kept or total - most) + cost
kept = total
end
local was, known = headOf, knownCountOf
if knownOf then
known = #knownOf / width
end
local head = was > least and was or least
if head > was or known < 4 then
local log_known_result
local known_2 = knownOf
if not known_2 then
local at = fixed + 0 * stride + 7
known_2 = sub(header, at + 1, at + knownCountOf * width)
knownOf = known_2
end
log_known_result = known_2
local ahead = sub(log_known_result, (head - was) * width + 1)
if head + #ahead / width == total then
ahead = sub(ahead .. added, 1, near)
end
headOf, knownOf, moved = head, ahead, moved > 1 and moved or 1
end
kept = kept < head and kept or head
if kept > oldest then
local lapsed = kept - (total - #tail / width)
if lapsed > 0 then
tail = sub(tail, lapsed * width + 1)
end
end
if expires and not whole then
oldest = kept
local added_2 = added
tail, total, newest = tail .. added_2, total + cost, instant
local ends, count = newest + longestMs, total - oldest
local isLate = ends > expires
if #tail > near and count > capacity or isLate and 4 * count < capacity then
local log_read_result
local inRing = total - #tail / width
local entries
local count_2 = (total < inRing and total or inRing) - oldest
if count_2 <= 0 then
entries = ''
else
local slot = oldest % capacity
local here = count_2 < capacity - slot and count_2 or capacity - slot
local entries_2 = call('GETRANGE', key, base + slot * width, base + (slot + here) * width - 1)
if here < count_2 then
entries_2 = entries_2 .. call('GETRANGE', key, base, base + (count_2 - here) * width - 1)
end
entries = entries_2
end
log_read_result = entries .. sub(tail, (0 > oldest - inRing and 0 or oldest - inRing) * width + 1, (0 > total - inRing and 0 or total - inRing) * width)
local function log_rewrite(key_2, entries_2, longer)
local known_2
local known_3 = knownOf
if not known_3 then
local at = fixed + 0 * stride + 7
known_3 = sub(header, at + 1, at + knownCountOf * width)
knownOf = known_3
end
known_2 = known_3
local head_2 = headOf - oldest
headOf, knownOf, moved = head_2, known_2, moved > 1 and moved or 1
oldest, total, capacity, tail = 0, total - oldest, 0, entries_2
if total > 4 then
capacity, tail = max(total, min(most, total + 5 * ceil(total / 20))), ''
end
if longer then
expires = newest + longestMs + longer
end
local value
if moved == 0 then
value = packBytes('>I6I6I4I6Bc0', newest, expires, capacity, total, #tail / width, tail)
else
local known_4
local known_5 = knownOf
if not known_5 then
local at = fixed + 0 * stride + 7
known_5 = sub(header, at + 1, at + knownCountOf * width)
knownOf = known_5
end
known_4 = known_5
local text = packBytes('>I6I6I4I6Bc0c0I6Bc0c0', newest, expires, capacity, total, #tail / width, tail, rep('\\0', near - #tail), headOf, #known_4 / width, known_4, rep('\\0', near - #known_4))
value = text
end
if total > 4 then
value = packBytes('c0c0c0', value, entries_2, rep('\\0', (capacity - total) * width))
end
if longer then
call('SET', key_2, value, 'PX', expires - now + slack)
else
call('SET', key_2, value, 'KEEPTTL')
end
end
log_rewrite(key, log_read_result, isLate and linger)
else
if #tail > near then
local from = total - #tail / width
local slot = from % capacity
local here = (capacity - slot) * width
call('SETRANGE', key, base + slot * width, sub(tail, 1, here))
if #tail > here then
call('SETRANGE', key, base, sub(tail, here + 1))
end
tail = ''
end
if isLate then
expires = ends + linger
call('PEXPIRE', key, expires - now + slack)
end
local log_header_result
if moved == 0 then
log_header_result = packBytes('>I6I6I4I6Bc0', newest, expires, capacity, total, #tail / width, tail)
else
local known_2
local known_3 = knownOf
if not known_3 then
local at = fixed + 0 * stride + 7
known_3 = sub(header, at + 1, at + knownCountOf * width)
knownOf = known_3
end
known_2 = known_3
local text = packBytes('>I6I6I4I6Bc0c0I6Bc0c0', newest, expires, capacity, total, #tail / width, tail, rep('\\0', near - #tail), headOf, #known_2 / width, known_2, rep('\\0', near - #known_2))
log_header_result = text
end
call('SETRANGE', key, '0', log_header_result)
end
else
oldest, total, newest = kept, total + cost, instant
local function log_rewrite(key_2, entries, longer)
local known_2
local known_3 = knownOf
if not known_3 then
local at = fixed + 0 * stride + 7
known_3 = sub(header, at + 1, at + knownCountOf * width)
knownOf = known_3
end
known_2 = known_3
local head_2 = headOf - oldest
headOf, knownOf, moved = head_2, known_2, moved > 1 and moved or 1
oldest, total, capacity, tail = 0, total - oldest, 0, entries
if total > 4 then
capacity, tail = max(total, min(most, total + 5 * ceil(total / 20))), ''
end
if longer then
expires = newest + longestMs + longer
end
local value
if moved == 0 then
value = packBytes('>I6I6I4I6Bc0', newest, expires, capacity, total, #tail / width, tail)
else
local known_4
local known_5 = knownOf
if not known_5 then
local at = fixed + 0 * stride + 7
known_5 = sub(header, at + 1, at + knownCountOf * width)
knownOf = known_5
end
known_4 = known_5
local text = packBytes('>I6I6I4I6Bc0c0I6Bc0c0', newest, expires, capacity, total, #tail / width, tail, rep('\\0', near - #tail), headOf, #known_4 / width, known_4, rep('\\0', near - #known_4))
value = text
end
if total > 4 then
value = packBytes('c0c0c0', value, entries, rep('\\0', (capacity - total) * width))
end
if longer then
call('SET', key_2, value, 'PX', expires - now + slack)
else
call('SET', key_2, value, 'KEEPTTL')
end
end
log_rewrite(key, whole and sub(whole, kept * width + 1) .. added or added, firstLinger)
end
end
else
if whole then
if total == 0 or newest + longestMs + slack <= now then
call('DEL', key)
else
local function log_advanceAll(key_2, at)
source = key_2
if whole then
chunk, chunkFrom = whole, oldest
else
local log_known_result
local known = knownOf
if not known then
local at_2 = fixed + 0 * stride + 7
known = sub(header, at_2 + 1, at_2 + knownCountOf * width)
knownOf = known
end
log_known_result = known
chunk, chunkFrom = log_known_result, headOf
end
local head = total
if total > oldest and newest > at - ARGV4 then
local total_2 = total
local low, high, step = oldest, total_2, 1
while low < high do
local probe = low + step - 1
if step == 0 or probe >= high then
probe, step = floor((low + high) / 2), 0
end
local log_entry_result
local beyond = probe - chunkFrom - #chunk / width
if probe < chunkFrom or beyond >= 16 then
chunk, chunkFrom, beyond = '', probe, 0
end
if beyond >= 0 then
local log_read_result
local from, to = probe - beyond, total < probe + 16 and total or probe + 16
local inRing = total - #tail / width
local entries
local count = (to < inRing and to or inRing) - from
if count <= 0 then
entries = ''
else
local slot = from % capacity
local here = count < capacity - slot and count or capacity - slot
local entries_2 = call('GETRANGE', source, base + slot * width, base + (slot + here) * width - 1)
if here < count then
entries_2 = entries_2 .. call('GETRANGE', source, base, base + (count - here) * width - 1)
end
entries = entries_2
end
log_read_result = entries .. sub(tail, (0 > from - inRing and 0 or from - inRing) * width + 1, (0 > to - inRing and 0 or to - inRing) * width)
chunk = chunk .. log_read_result
end
log_entry_result = newest - (newest - unpackBytes(entry, chunk, (probe - chunkFrom) * width + 1)) % modulus
if log_entry_result > at - ARGV4 then
high, step = probe, 0
else
low, step = probe + 1, step * 2
end
end
head = low
end
local skip = (head - chunkFrom) * width
local known = sub(chunk, skip + 1, skip + near)
headOf, knownOf, moved = head, known, moved > 1 and moved or 1
end
log_advanceAll(key, newest)
local function log_rewrite(key_2, entries, longer)
local known
local known_2 = knownOf
if not known_2 then
local at = fixed + 0 * stride + 7
known_2 = sub(header, at + 1, at + knownCountOf * width)
knownOf = known_2
end
known = known_2
local head = headOf - oldest
headOf, knownOf, moved = head, known, moved > 1 and moved or 1
oldest, total, capacity, tail = 0, total - oldest, 0, entries
if total > 4 then
capacity, tail = max(total, min(most, total + 5 * ceil(total / 20))), ''
end
if longer then
expires = newest + longestMs + longer
end
local value
if moved == 0 then
value = packBytes('>I6I6I4I6Bc0', newest, expires, capacity, total, #tail / width, tail)
else
local known_3
local known_4 = knownOf
if not known_4 then
local at = fixed + 0 * stride + 7
known_4 = sub(header, at + 1, at + knownCountOf * width)
knownOf = known_4
end
known_3 = known_4
local text = packBytes('>I6I6I4I6Bc0c0I6Bc0c0', newest, expires, capacity, total, #tail / width, tail, rep('\\0', near - #tail), headOf, #known_3 / width, known_3, rep('\\0', near - #known_3))
value = text
end
if total > 4 then
value = packBytes('c0c0c0', value, entries, rep('\\0', (capacity - total) * width))
end
if longer then
call('SET', key_2, value, 'PX', expires - now + slack)
else
call('SET', key_2, value, 'KEEPTTL')
end
end
log_rewrite(key, whole, 0)
log_advanceAll(key, instant)
end
end
end
local latest = newest and newest + 1 or 0
if outcome == 1 then
local piece = packBytes('>BI6I6I4', outcome, instant, latest, total - (headOf or total))
reply = reply .. piece
else
local piece = packBytes('>BI6I6', outcome, instant, latest)
reply = reply .. piece
source = key
if whole then
chunk, chunkFrom = whole, oldest
else
local log_known_result
local known = knownOf
if not known then
local at = fixed + 0 * stride + 7
known = sub(header, at + 1, at + knownCountOf * width)
knownOf = known
end
log_known_result = known
chunk, chunkFrom = log_known_result, headOf
end
local fewer = -1
local head = headOf > total - ARGV3 and headOf or total - ARGV3
if head < total then
local log_entry_result
local beyond = head - chunkFrom - #chunk / width
if head < chunkFrom or beyond >= 16 then
chunk, chunkFrom, beyond = '', head, 0
end
if beyond >= 0 then
local log_read_result
local from, to = head - beyond, total < head + 16 and total or head + 16
local inRing = total - #tail / width
local entries
local count = (to < inRing and to or inRing) - from
if count <= 0 then
entries = ''
else
local slot = from % capacity
local here = count < capacity - slot and count or capacity - slot
local entries_2 = call('GETRANGE', source, base + slot * width, base + (slot + here) * width - 1)
if here < count then
entries_2 = entries_2 .. call('GETRANGE', source, base, base + (count - here) * width - 1)
end
entries = entries_2
end
log_read_result = entries .. sub(tail, (0 > from - inRing and 0 or from - inRing) * width + 1, (0 > to - inRing and 0 or to - inRing) * width)
chunk = chunk .. log_read_result
end
log_entry_result = newest - (newest - unpackBytes(entry, chunk, (head - chunkFrom) * width + 1)) % modulus
fewer = log_entry_result + ARGV4 - now
end
local wait_2
local total_2, live, at = total, total - headOf, instant
if cost > ARGV3 then
wait_2 = -1
else
if live + cost <= ARGV3 or cost == 0 then
wait_2 = 0
else
local log_entry_result
local i = total_2 - (ARGV3 - cost + 1)
local beyond = i - chunkFrom - #chunk / width
if i < chunkFrom or beyond >= 16 then
chunk, chunkFrom, beyond = '', i, 0
end
if beyond >= 0 then
local log_read_result
local from, to = i - beyond, total < i + 16 and total or i + 16
local inRing = total - #tail / width
local entries
local count = (to < inRing and to or inRing) - from
if count <= 0 then
entries = ''
else
local slot = from % capacity
local here = count < capacity - slot and count or capacity - slot
local entries_2 = call('GETRANGE', source, base + slot * width, base + (slot + here) * width - 1)
if here < count then
entries_2 = entries_2 .. call('GETRANGE', source, base, base + (count - here) * width - 1)
end
entries = entries_2
end
log_read_result = entries .. sub(tail, (0 > from - inRing and 0 or from - inRing) * width + 1, (0 > to - inRing and 0 or to - inRing) * width)
chunk = chunk .. log_read_result
end
log_entry_result = newest - (newest - unpackBytes(entry, chunk, (i - chunkFrom) * width + 1)) % modulus
wait_2 = log_entry_result + ARGV4 - at
end
end
if wait_2 > 0 then
wait_2 = wait_2 + instant - now
end
local piece_2 = packBytes('>I4I7I7', total - (headOf or total), wait_2 + 1, fewer + 1)
reply = reply .. piece_2
end` },
  piece42,
  piece43,
] },
{ name: 'one-logs', kind: 'log', isShared: true, isJoint: false, pieces: [
  { sections: [], source: `local given, KEYS = ARGV, KEYS
local tryCall = redis.pcall
local call, floor, ceil, max, min = redis.call, math.floor, math.ceil, math.max, math.min
local packBytes, unpackBytes = struct.pack, struct.unpack
local sub, rep, format = string.sub, string.rep, string.format
local paramCount
local ARGV = PARAMS
paramCount = #PARAMS
local last = paramCount
local clock = given[2] or ''
local now
local slack = 0
if clock ~= '' then
now, slack = clock + 0, 3600000
else
local time = call('TIME')
now = time[1] * 1000 + floor(time[2] / 1000)
end
local reply = packBytes('>I6', now)
local look = {}
local limits, most, longestMs
local firstLinger, linger
local widthOf
local entryOf
local baseOf
local headerEndOf
local newLogOf
local newLifeOf
local headOf, knownOf, knownCountOf = {}, {}, {}
local base, headerEnd, width, near, entry, modulus, fixed, stride, limitFormat
local header, newest, expires, capacity, oldest, total, tail, instant, whole, moved
local source, chunk, chunkFrom
local stampedAt, stamp = nil, ''
look[2] = function(key, cost)
header, whole, moved = tryCall('GETRANGE', key, '0', headerEnd), nil, 0
local unwritten
if #header < base then
if type(header) == 'table' and not string.match(header.err, '^WRONGTYPE') then
if not string.match(header.err, 'non local key') then
error(header.err)
end
end
expires = nil
else
newest, expires, capacity, total, unwritten = unpackBytes('>I6I6I4I6B', header)
local spare = expires - newest - longestMs
if spare < 0 or spare > linger then
expires = nil
end
end
if not expires then
newest, oldest, total, tail, instant = nil, 0, 0, '', now
for l = 1, limits do
headOf[l], knownOf[l] = 0, ''
end
else
tail = sub(header, 24, 23 + unwritten * width)
if newest > now and newest <= now + longestMs then
instant = newest
else
instant = now
end
oldest = total
local at = fixed + 1
for l = 1, limits do
local head, known, low = unpackBytes(limitFormat, header, at)
headOf[l], knownOf[l], knownCountOf[l] = head, nil, known
at = at + stride
oldest = oldest < head and oldest or head
if known == 0 or newest - (newest - low) % modulus <= instant - ARGV[1 + 2 * l + 1] then
source = key
if whole then
chunk, chunkFrom = whole, oldest
else
local log_known_result
local known_2 = knownOf[l]
if not known_2 then
local at_2 = fixed + (l - 1) * stride + 7
known_2 = sub(header, at_2 + 1, at_2 + knownCountOf[l] * width)
knownOf[l] = known_2
end
log_known_result = known_2
chunk, chunkFrom = log_known_result, headOf[l]
end
local head_2 = total
if total > oldest and newest > instant - ARGV[1 + 2 * l + 1] then
local total_2, windowMs = total, ARGV[1 + 2 * l + 1]
local low_2, high, step = head, total_2, 1
while low_2 < high do
local probe = low_2 + step - 1
if step == 0 or probe >= high then
probe, step = floor((low_2 + high) / 2), 0
end
local log_entry_result
local beyond = probe - chunkFrom - #chunk / width
if probe < chunkFrom or beyond >= 16 then
chunk, chunkFrom, beyond = '', probe, 0
end
if beyond >= 0 then
local log_read_result
local from, to = probe - beyond, total < probe + 16 and total or probe + 16
local inRing = total - #tail / width
local entries
local count = (to < inRing and to or inRing) - from
if count <= 0 then
entries = ''
else
local slot = from % capacity
local here = count < capacity - slot and count or capacity - slot
local entries_2 = call('GETRANGE', source, base + slot * width, base + (slot + here) * width - 1)
if here < count then
entries_2 = entries_2 .. call('GETRANGE', source, base, base + (count - here) * width - 1)
end
entries = entries_2
end
log_read_result = entries .. sub(tail, (0 > from - inRing and 0 or from - inRing) * width + 1, (0 > to - inRing and 0 or to - inRing) * width)
chunk = chunk .. log_read_result
end
log_entry_result = newest - (newest - unpackBytes(entry, chunk, (probe - chunkFrom) * width + 1)) % modulus
if log_entry_result > instant - windowMs then
high, step = probe, 0
else
low_2, step = probe + 1, step * 2
end
end
head_2 = low_2
end
local skip = (head_2 - chunkFrom) * width
local known_2 = sub(chunk, skip + 1, skip + near)
headOf[l], knownOf[l], moved = head_2, known_2, moved > l and moved or l
end
end
if newest > now + longestMs then
newest = now
local entries = rep(packBytes(entry, now % modulus), total - oldest)
whole, oldest, total = entries, 0, #entries / width
newest = total > 0 and newest - (newest - unpackBytes(entry, entries, (total - 1) * width + 1)) % modulus or nil
local function log_advanceAll(key_2, at_2)
for l = 1, limits do
source = key_2
if whole then
chunk, chunkFrom = whole, oldest
else
local log_known_result
local known = knownOf[l]
if not known then
local at_3 = fixed + (l - 1) * stride + 7
known = sub(header, at_3 + 1, at_3 + knownCountOf[l] * width)
knownOf[l] = known
end
log_known_result = known
chunk, chunkFrom = log_known_result, headOf[l]
end
local head = total
if total > oldest and newest > at_2 - ARGV[1 + 2 * l + 1] then
local total_2, windowMs = total, ARGV[1 + 2 * l + 1]
local low, high, step = oldest, total_2, 1
while low < high do
local probe = low + step - 1
if step == 0 or probe >= high then
probe, step = floor((low + high) / 2), 0
end
local log_entry_result
local beyond = probe - chunkFrom - #chunk / width
if probe < chunkFrom or beyond >= 16 then
chunk, chunkFrom, beyond = '', probe, 0
end
if beyond >= 0 then
local log_read_result
local from, to = probe - beyond, total < probe + 16 and total or probe + 16
local inRing = total - #tail / width
local entries_2
local count = (to < inRing and to or inRing) - from
if count <= 0 then
entries_2 = ''
else
local slot = from % capacity
local here = count < capacity - slot and count or capacity - slot
local entries_3 = call('GETRANGE', source, base + slot * width, base + (slot + here) * width - 1)
if here < count then
entries_3 = entries_3 .. call('GETRANGE', source, base, base + (count - here) * width - 1)
end
entries_2 = entries_3
end
log_read_result = entries_2 .. sub(tail, (0 > from - inRing and 0 or from - inRing) * width + 1, (0 > to - inRing and 0 or to - inRing) * width)
chunk = chunk .. log_read_result
end
log_entry_result = newest - (newest - unpackBytes(entry, chunk, (probe - chunkFrom) * width + 1)) % modulus
if log_entry_result > at_2 - windowMs then
high, step = probe, 0
else
low, step = probe + 1, step * 2
end
end
head = low
end
local skip = (head - chunkFrom) * width
local known = sub(chunk, skip + 1, skip + near)
headOf[l], knownOf[l], moved = head, known, moved > l and moved or l
end
end
log_advanceAll(key, instant)
end
end
local wait = 0
for l = 1, limits do
if cost > ARGV[1 + 2 * l] then
wait = -1
end
if wait == 0 and cost > 0 and total - headOf[l] + cost > ARGV[1 + 2 * l] then
wait = 1
end
end
return wait
end
if tryCall('GET', KEYS[1]) then
return ''
end` },
  piece41,
  { sections: [], source: `local cost, key = (given[1] or 1) + 0, KEYS[2]
if ARGV[2] <= 4294967296 then
widthOf, entryOf = 4, '>I4'
else
widthOf, entryOf = 6, '>I6'
end
baseOf = 23 + 4 * widthOf + (last - 2) / 2 * (7 + 4 * widthOf)
headerEndOf = format('%d', baseOf - 1)
newLogOf = nil
limits = (last - 2) / 2
most, longestMs = ARGV[1], ARGV[2]
firstLinger = floor(longestMs / 10)
linger = max(firstLinger, 10000 < longestMs and 10000 or longestMs)
base, headerEnd, width, entry = baseOf, headerEndOf, widthOf, entryOf
near = 4 * width
fixed, stride = 23 + near, 7 + near
if width == 4 then
modulus, limitFormat = 4294967296, '>I6BI4'
else
modulus, limitFormat = 281474976710656, '>I6BI6'
end
local outcome = 0
if look[2](key, cost) == 0 then
outcome = 1
if instant ~= stampedAt or #stamp ~= width then
stamp, stampedAt = packBytes(entry, instant % modulus), instant
end
if cost == 1 and not expires then
local fresh = newLogOf
if not fresh then
local gap = rep('\\0', near - width)
fresh = packBytes('>I6I6I4I6Bc0c0', now, now + longestMs + firstLinger, 0, 1, 1, stamp, gap)
for _ = 1, limits do
fresh = packBytes('>c0I6Bc0c0', fresh, 0, 1, stamp, gap)
end
newLogOf, newLifeOf = fresh, format('%d', longestMs + firstLinger + slack)
end
call('SET', key, fresh, 'PX', newLifeOf)
for l = 1, limits do
headOf[l], knownOf[l] = 0, stamp
end
oldest, total, newest, tail = 0, 1, now, stamp
else
local added = stamp
if cost > 1 then
added = rep(added, cost)
end
local kept, least = total, 0
if total + cost - oldest > most then
for l = 1, limits do
kept = kept < headOf[l] and kept or headOf[l]
end
least = (kept < total - most and kept or total - most) + cost
kept = total
end
for l = 1, limits do
local was, known = headOf[l], knownCountOf[l]
if knownOf[l] then
known = #knownOf[l] / width
end
local head = was > least and was or least
if head > was or known < 4 then
local log_known_result
local known_2 = knownOf[l]
if not known_2 then
local at = fixed + (l - 1) * stride + 7
known_2 = sub(header, at + 1, at + knownCountOf[l] * width)
knownOf[l] = known_2
end
log_known_result = known_2
local ahead = sub(log_known_result, (head - was) * width + 1)
if head + #ahead / width == total then
ahead = sub(ahead .. added, 1, near)
end
headOf[l], knownOf[l], moved = head, ahead, moved > l and moved or l
end
kept = kept < head and kept or head
end
if kept > oldest then
local lapsed = kept - (total - #tail / width)
if lapsed > 0 then
tail = sub(tail, lapsed * width + 1)
end
end
if expires and not whole then
oldest = kept
local added_2 = added
tail, total, newest = tail .. added_2, total + cost, instant
local ends, count = newest + longestMs, total - oldest
local isLate = ends > expires
if #tail > near and count > capacity or isLate and 4 * count < capacity then
local log_read_result
local inRing = total - #tail / width
local entries
local count_2 = (total < inRing and total or inRing) - oldest
if count_2 <= 0 then
entries = ''
else
local slot = oldest % capacity
local here = count_2 < capacity - slot and count_2 or capacity - slot
local entries_2 = call('GETRANGE', key, base + slot * width, base + (slot + here) * width - 1)
if here < count_2 then
entries_2 = entries_2 .. call('GETRANGE', key, base, base + (count_2 - here) * width - 1)
end
entries = entries_2
end
log_read_result = entries .. sub(tail, (0 > oldest - inRing and 0 or oldest - inRing) * width + 1, (0 > total - inRing and 0 or total - inRing) * width)
local function log_rewrite(key_2, entries_2, longer)
for l = 1, limits do
local known
local known_2 = knownOf[l]
if not known_2 then
local at = fixed + (l - 1) * stride + 7
known_2 = sub(header, at + 1, at + knownCountOf[l] * width)
knownOf[l] = known_2
end
known = known_2
local head = headOf[l] - oldest
headOf[l], knownOf[l], moved = head, known, moved > l and moved or l
end
oldest, total, capacity, tail = 0, total - oldest, 0, entries_2
if total > 4 then
capacity, tail = max(total, min(most, total + 5 * ceil(total / 20))), ''
end
if longer then
expires = newest + longestMs + longer
end
local value
if moved == 0 then
value = packBytes('>I6I6I4I6Bc0', newest, expires, capacity, total, #tail / width, tail)
else
local known
local known_2 = knownOf[1]
if not known_2 then
local at = fixed + 0 * stride + 7
known_2 = sub(header, at + 1, at + knownCountOf[1] * width)
knownOf[1] = known_2
end
known = known_2
local text = packBytes('>I6I6I4I6Bc0c0I6Bc0c0', newest, expires, capacity, total, #tail / width, tail, rep('\\0', near - #tail), headOf[1], #known / width, known, rep('\\0', near - #known))
for l = 2, limits do
if l <= moved then
local known_3 = knownOf[l]
if not known_3 then
local at = fixed + (l - 1) * stride + 7
known_3 = sub(header, at + 1, at + knownCountOf[l] * width)
knownOf[l] = known_3
end
known = known_3
text = packBytes('>c0I6Bc0c0', text, headOf[l], #known / width, known, rep('\\0', near - #known))
end
end
value = text
end
if total > 4 then
value = packBytes('c0c0c0', value, entries_2, rep('\\0', (capacity - total) * width))
end
if longer then
call('SET', key_2, value, 'PX', expires - now + slack)
else
call('SET', key_2, value, 'KEEPTTL')
end
end
log_rewrite(key, log_read_result, isLate and linger)
else
if #tail > near then
local from = total - #tail / width
local slot = from % capacity
local here = (capacity - slot) * width
call('SETRANGE', key, base + slot * width, sub(tail, 1, here))
if #tail > here then
call('SETRANGE', key, base, sub(tail, here + 1))
end
tail = ''
end
if isLate then
expires = ends + linger
call('PEXPIRE', key, expires - now + slack)
end
local log_header_result
if moved == 0 then
log_header_result = packBytes('>I6I6I4I6Bc0', newest, expires, capacity, total, #tail / width, tail)
else
local known
local known_2 = knownOf[1]
if not known_2 then
local at = fixed + 0 * stride + 7
known_2 = sub(header, at + 1, at + knownCountOf[1] * width)
knownOf[1] = known_2
end
known = known_2
local text = packBytes('>I6I6I4I6Bc0c0I6Bc0c0', newest, expires, capacity, total, #tail / width, tail, rep('\\0', near - #tail), headOf[1], #known / width, known, rep('\\0', near - #known))
for l = 2, limits do
if l <= moved then
local known_3 = knownOf[l]
if not known_3 then
local at = fixed + (l - 1) * stride + 7
known_3 = sub(header, at + 1, at + knownCountOf[l] * width)
knownOf[l] = known_3
end
known = known_3
text = packBytes('>c0I6Bc0c0', text, headOf[l], #known / width, known, rep('\\0', near - #known))
end
end
log_header_result = text
end
call('SETRANGE', key, '0', log_header_result)
end
else
oldest, total, newest = kept, total + cost, instant
local function log_rewrite(key_2, entries, longer)
for l = 1, limits do
local known
local known_2 = knownOf[l]
if not known_2 then
local at = fixed + (l - 1) * stride + 7
known_2 = sub(header, at + 1, at + knownCountOf[l] * width)
knownOf[l] = known_2
end
known = known_2
local head = headOf[l] - oldest
headOf[l], knownOf[l], moved = head, known, moved > l and moved or l
end
oldest, total, capacity, tail = 0, total - oldest, 0, entries
if total > 4 then
capacity, tail = max(total, min(most, total + 5 * ceil(total / 20))), ''
end
if longer then
expires = newest + longestMs + longer
end
local value
if moved == 0 then
value = packBytes('>I6I6I4I6Bc0', newest, expires, capacity, total, #tail / width, tail)
else
local known
local known_2 = knownOf[1]
if not known_2 then
local at = fixed + 0 * stride + 7
known_2 = sub(header, at + 1, at + knownCountOf[1] * width)
knownOf[1] = known_2
end
known = known_2
local text = packBytes('>I6I6I4I6Bc0c0I6Bc0c0', newest, expires, capacity, total, #tail / width, tail, rep('\\0', near - #tail), headOf[1], #known / width, known, rep('\\0', near - #known))
for l = 2, limits do
if l <= moved then
local known_3 = knownOf[l]
if not known_3 then
local at = fixed + (l - 1) * stride + 7
known_3 = sub(header, at + 1, at + knownCountOf[l] * width)
knownOf[l] = known_3
end
known = known_3
text = packBytes('>c0I6Bc0c0', text, headOf[l], #known / width, known, rep('\\0', near - #known))
end
end
value = text
end
if total > 4 then
value = packBytes('c0c0c0', value, entries, rep('\\0', (capacity - total) * width))
end
if longer then
call('SET', key_2, value, 'PX', expires - now + slack)
else
call('SET', key_2, value, 'KEEPTTL')
end
end
log_rewrite(key, whole and sub(whole, kept * width + 1) .. added or added, firstLinger)
end
end
else
if whole then
if total == 0 or newest + longestMs + slack <= now then
call('DEL', key)
else
local function log_advanceAll(key_2, at)
for l = 1, limits do
source = key_2
if whole then
chunk, chunkFrom = whole, oldest
else
local log_known_result
local known = knownOf[l]
if not known then
local at_2 = fixed + (l - 1) * stride + 7
known = sub(header, at_2 + 1, at_2 + knownCountOf[l] * width)
knownOf[l] = known
end
log_known_result = known
chunk, chunkFrom = log_known_result, headOf[l]
end
local head = total
if total > oldest and newest > at - ARGV[1 + 2 * l + 1] then
local total_2, windowMs = total, ARGV[1 + 2 * l + 1]
local low, high, step = oldest, total_2, 1
while low < high do
local probe = low + step - 1
if step == 0 or probe >= high then
probe, step = floor((low + high) / 2), 0
end
local log_entry_result
local beyond = probe - chunkFrom - #chunk / width
if probe < chunkFrom or beyond >= 16 then
chunk, chunkFrom, beyond = '', probe, 0
end
if beyond >= 0 then
local log_read_result
local from, to = probe - beyond, total < probe + 16 and total or probe + 16
local inRing = total - #tail / width
local entries
local count = (to < inRing and to or inRing) - from
if count <= 0 then
entries = ''
else
local slot = from % capacity
local here = count < capacity - slot and count or capacity - slot
local entries_2 = call('GETRANGE', source, base + slot * width, base + (slot + here) * width - 1)
if here < count then
entries_2 = entries_2 .. call('GETRANGE', source, base, base + (count - here) * width - 1)
end
entries = entries_2
end
log_read_result = entries .. sub(tail, (0 > from - inRing and 0 or from - inRing) * width + 1, (0 > to - inRing and 0 or to - inRing) * width)
chunk = chunk .. log_read_result
end
log_entry_result = newest - (newest - unpackBytes(entry, chunk, (probe - chunkFrom) * width + 1)) % modulus
if log_entry_result > at - windowMs then
high, step = probe, 0
else
low, step = probe + 1, step * 2
end
end
head = low
end
local skip = (head - chunkFrom) * width
local known = sub(chunk, skip + 1, skip + near)
headOf[l], knownOf[l], moved = head, known, moved > l and moved or l
end
end
log_advanceAll(key, newest)
local function log_rewrite(key_2, entries, longer)
for l = 1, limits do
local known
local known_2 = knownOf[l]
if not known_2 then
local at = fixed + (l - 1) * stride + 7
known_2 = sub(header, at + 1, at + knownCountOf[l] * width)
knownOf[l] = known_2
end
known = known_2
local head = headOf[l] - oldest
headOf[l], knownOf[l], moved = head, known, moved > l and moved or l
end
oldest, total, capacity, tail = 0, total - oldest, 0, entries
if total > 4 then
capacity, tail = max(total, min(most, total + 5 * ceil(total / 20))), ''
end
if longer then
expires = newest + longestMs + longer
end
local value
if moved == 0 then
value = packBytes('>I6I6I4I6Bc0', newest, expires, capacity, total, #tail / width, tail)
else
local known
local known_2 = knownOf[1]
if not known_2 then
local at = fixed + 0 * stride + 7
known_2 = sub(header, at + 1, at + knownCountOf[1] * width)
knownOf[1] = known_2
end
known = known_2
local text = packBytes('>I6I6I4I6Bc0c0I6Bc0c0', newest, expires, capacity, total, #tail / width, tail, rep('\\0', near - #tail), headOf[1], #known / width, known, rep('\\0', near - #known))
for l = 2, limits do
if l <= moved then
local known_3 = knownOf[l]
if not known_3 then
local at = fixed + (l - 1) * stride + 7
known_3 = sub(header, at + 1, at + knownCountOf[l] * width)
knownOf[l] = known_3
end
known = known_3
text = packBytes('>c0I6Bc0c0', text, headOf[l], #known / width, known, rep('\\0', near - #known))
end
end
value = text
end
if total > 4 then
value = packBytes('c0c0c0', value, entries, rep('\\0', (capacity - total) * width))
end
if longer then
call('SET', key_2, value, 'PX', expires - now + slack)
else
call('SET', key_2, value, 'KEEPTTL')
end
end
log_rewrite(key, whole, 0)
log_advanceAll(key, instant)
end
end
end
local latest = newest and newest + 1 or 0
if outcome == 1 then
local piece = packBytes('>BI6I6I4', outcome, instant, latest, total - (headOf[1] or total))
reply = reply .. piece
for l = 2, limits, 3 do
local counts = packBytes('>I4I4I4', total - (headOf[l] or total), total - (headOf[l + 1] or total), total - (headOf[l + 2] or total))
if limits < l + 2 then
counts = sub(counts, 1, (limits - l + 1) * 4)
end
reply = reply .. counts
end
else
local piece = packBytes('>BI6I6', outcome, instant, latest)
reply = reply .. piece
for l = 1, limits do
source = key
if whole then
chunk, chunkFrom = whole, oldest
else
local log_known_result
local known = knownOf[l]
if not known then
local at = fixed + (l - 1) * stride + 7
known = sub(header, at + 1, at + knownCountOf[l] * width)
knownOf[l] = known
end
log_known_result = known
chunk, chunkFrom = log_known_result, headOf[l]
end
local fewer = -1
local head = headOf[l] > total - ARGV[1 + 2 * l] and headOf[l] or total - ARGV[1 + 2 * l]
if head < total then
local log_entry_result
local beyond = head - chunkFrom - #chunk / width
if head < chunkFrom or beyond >= 16 then
chunk, chunkFrom, beyond = '', head, 0
end
if beyond >= 0 then
local log_read_result
local from, to = head - beyond, total < head + 16 and total or head + 16
local inRing = total - #tail / width
local entries
local count = (to < inRing and to or inRing) - from
if count <= 0 then
entries = ''
else
local slot = from % capacity
local here = count < capacity - slot and count or capacity - slot
local entries_2 = call('GETRANGE', source, base + slot * width, base + (slot + here) * width - 1)
if here < count then
entries_2 = entries_2 .. call('GETRANGE', source, base, base + (count - here) * width - 1)
end
entries = entries_2
end
log_read_result = entries .. sub(tail, (0 > from - inRing and 0 or from - inRing) * width + 1, (0 > to - inRing and 0 or to - inRing) * width)
chunk = chunk .. log_read_result
end
log_entry_result = newest - (newest - unpackBytes(entry, chunk, (head - chunkFrom) * width + 1)) % modulus
fewer = log_entry_result + ARGV[1 + 2 * l + 1] - now
end
local wait
local total_2, live, at, limit, windowMs = total, total - headOf[l], instant, ARGV[1 + 2 * l], ARGV[1 + 2 * l + 1]
if cost > limit then
wait = -1
else
if live + cost <= limit or cost == 0 then
wait = 0
else
local log_entry_result
local i = total_2 - (limit - cost + 1)
local beyond = i - chunkFrom - #chunk / width
if i < chunkFrom or beyond >= 16 then
chunk, chunkFrom, beyond = '', i, 0
end
if beyond >= 0 then
local log_read_result
local from, to = i - beyond, total < i + 16 and total or i + 16
local inRing = total - #tail / width
local entries
local count = (to < inRing and to or inRing) - from
if count <= 0 then
entries = ''
else
local slot = from % capacity
local here = count < capacity - slot and count or capacity - slot
local entries_2 = call('GETRANGE', source, base + slot * width, base + (slot + here) * width - 1)
if here < count then
entries_2 = entries_2 .. call('GETRANGE', source, base, base + (count - here) * width - 1)
end
entries = entries_2
end
log_read_result = entries .. sub(tail, (0 > from - inRing and 0 or from - inRing) * width + 1, (0 > to - inRing and 0 or to - inRing) * width)
chunk = chunk .. log_read_result
end
log_entry_result = newest - (newest - unpackBytes(entry, chunk, (i - chunkFrom) * width + 1)) % modulus
wait = log_entry_result + windowMs - at
end
end
if wait > 0 then
wait = wait + instant - now
end
local piece_2 = packBytes('>I4I7I7', total - (headOf[l] or total), wait + 1, fewer + 1)
reply = reply .. piece_2
end
end` },
  piece42,
  piece43,
] },
{ name: 'one-segments', kind: 'segments', isShared: false, isJoint: false, pieces: [
  { sections: [], source: `local given, KEYS = ARGV, KEYS
local tryCall = redis.pcall
local call, floor, ceil, max, min = redis.call, math.floor, math.ceil, math.max, math.min
local packBytes, unpackBytes = struct.pack, struct.unpack
local sub, rep = string.sub, string.rep
local ARGV1, ARGV2, ARGV3, ARGV4 = P1, P2, P3, P4
local clock = given[2] or ''
local now
local slack = 0
if clock ~= '' then
now, slack = clock + 0, 3600000
else
local time = call('TIME')
now = time[1] * 1000 + floor(time[2] / 1000)
end
local reply = packBytes('>I6', now)
local limit, windowMs, segments, edge, segmentMs, width, counter
local withRefusals, most
local widthOf
local counterOf
local mostOf
local counts, total, segment, offset, instant, newest
if tryCall('GET', KEYS[1]) then
return ''
end` },
  piece41,
  { sections: [], source: `local cost, key = (given[1] or 1) + 0, KEYS[2]
local bytes, top, limit_2, isWide = 1, 256, ARGV1, ARGV4 >= 8
if isWide then
bytes = limit_2 > 2147483647 and 7 or 4
end
if ARGV4 >= 4 then
limit_2 = max(limit_2, min(2147483647, floor(9007199254740991 / ARGV2)))
end
while not isWide and top <= limit_2 do
bytes = bytes + 1
top = top * 256
end
widthOf, counterOf, mostOf = bytes, '>I' .. bytes, limit_2
limit, windowMs, segments, edge = ARGV1, ARGV2, ARGV3, ARGV4
segmentMs, width, counter, most = windowMs / segments, widthOf, counterOf, mostOf
if edge >= 8 then
edge = edge - 8
end
withRefusals = edge >= 4
if withRefusals then
edge = edge - 4
end
local outcome = 0
local look_result
local stored = tryCall('GET', key)
if stored and #stored ~= 6 + (segments + 2) * width then
if type(stored) == 'table' and not string.match(stored.err, '^WRONGTYPE') then
if not string.match(stored.err, 'non local key') then
error(stored.err)
end
end
stored = false
end
newest, instant = nil, now
if stored then
newest = unpackBytes('>I6', stored, 1)
local at = newest * segmentMs
if at > now and at <= now + windowMs then
instant = at
else
instant = now
end
end
segment = floor(instant / segmentMs)
offset = instant - segment * segmentMs
local by = stored and (0 > segment - newest and 0 or segment - newest) or segments + 1
if by > segments then
total, counts = 0, rep('\\0', (segments + 1) * width)
else
total, counts = unpackBytes(counter, stored, 7), sub(stored, 7 + width, 6 + (segments + 2) * width)
if by > 0 then
local window_leaving_result
local units = 0
for k = 0 > segments - by and 0 or segments - by, segments - 1 do
units = units + (unpackBytes(counter, counts, k * width + 1))
end
window_leaving_result = units
total = total - window_leaving_result
counts = rep('\\0', by * width) .. sub(counts, 1, (segments + 1 - by) * width)
end
end
if newest and newest * segmentMs > now + windowMs then
if edge < 2 then
else
local units = (unpackBytes(counter, counts, segments * width + 1))
counts = sub(counts, 1, segments * width) .. rep('\\0', width)
local k, units_2 = segments - 1, max(0, units < most - total and units or most - total)
local count = packBytes(counter, (unpackBytes(counter, counts, k * width + 1)) + units_2)
counts = sub(counts, 1, k * width) .. count .. sub(counts, (k + 1) * width + 1)
if k < segments then
total = total + units_2
end
end
end
local wait
if cost > limit then
wait = -1
else
if cost == 0 then
wait = 0
else
local inside, wait_2 = total, (segments + 1) * segmentMs - offset
for by_2 = 0, segments do
if by_2 > 0 then
inside = inside - (unpackBytes(counter, counts, (segments - by_2) * width + 1))
end
if inside + cost <= limit then
local count = (unpackBytes(counter, counts, (segments - by_2) * width + 1))
local from
local room = limit - cost - inside
if edge == 1 or count <= room then
from = 0
else
if edge == 0 then
from = segmentMs
else
if edge == 2 then
from = floor(segmentMs * (count - room - 1) / count) + 1
else
from = ceil(segmentMs * (count - room) / count)
end
end
end
if from < segmentMs then
wait_2 = 0 > by_2 * segmentMs + from - offset and 0 or by_2 * segmentMs + from - offset
break
end
end
end
wait = wait_2
end
end
if wait > 0 then
look_result = wait + instant - now
else
look_result = wait
end
if look_result == 0 then
outcome = 1
local room
if withRefusals then
room = 0 > most - total and 0 or most - total
else
local window_edgeUnits_result
local count = (unpackBytes(counter, counts, segments * width + 1))
if edge == 0 then
window_edgeUnits_result = count
else
if edge == 1 then
window_edgeUnits_result = 0
else
local share = count * (segmentMs - offset) / segmentMs
if edge == 2 then
window_edgeUnits_result = floor(share)
else
window_edgeUnits_result = ceil(share)
end
end
end
room = 0 > limit - total - window_edgeUnits_result and 0 or limit - total - window_edgeUnits_result
end
local units = cost < room and cost or room
local count = packBytes(counter, (unpackBytes(counter, counts, 0 * width + 1)) + units)
counts = sub(counts, 1, 0 * width) .. count .. sub(counts, 1 * width + 1)
if 0 < segments then
total = total + units
end
local isNewest = newest == segment
if isNewest then
call('SETRANGE', key, '6', packBytes(counter, total) .. sub(counts, 1, width))
else
local segments_reset_result
local reset
local reset_2 = 0
for k = 0, segments do
local count_2 = (unpackBytes(counter, counts, k * width + 1))
if count_2 > 0 then
local window_offsetFor_result
if edge == 1 or count_2 <= 0 then
window_offsetFor_result = 0
else
if edge == 0 then
window_offsetFor_result = segmentMs
else
if edge == 2 then
window_offsetFor_result = floor(segmentMs * (count_2 - 1) / count_2) + 1
else
window_offsetFor_result = ceil(segmentMs * (count_2 - 0) / count_2)
end
end
end
reset_2 = 0 > (segments - k) * segmentMs + window_offsetFor_result - offset and 0 or (segments - k) * segmentMs + window_offsetFor_result - offset
break
end
end
reset = reset_2
if reset > 0 then
segments_reset_result = reset + instant - now
else
segments_reset_result = 0
end
if segments_reset_result > 0 then
call('SET', key, packBytes('>I6', segment) .. packBytes(counter, total) .. counts, 'PX', windowMs + segmentMs - offset + instant - now + slack)
elseif newest then
call('DEL', key)
end
end
else
if newest and newest * segmentMs > now + windowMs then
local segments_reset_result
local reset
local reset_2 = 0
for k = 0, segments do
local count = (unpackBytes(counter, counts, k * width + 1))
if count > 0 then
local window_offsetFor_result
if edge == 1 or count <= 0 then
window_offsetFor_result = 0
else
if edge == 0 then
window_offsetFor_result = segmentMs
else
if edge == 2 then
window_offsetFor_result = floor(segmentMs * (count - 1) / count) + 1
else
window_offsetFor_result = ceil(segmentMs * (count - 0) / count)
end
end
end
reset_2 = 0 > (segments - k) * segmentMs + window_offsetFor_result - offset and 0 or (segments - k) * segmentMs + window_offsetFor_result - offset
break
end
end
reset = reset_2
if reset > 0 then
segments_reset_result = reset + instant - now
else
segments_reset_result = 0
end
if segments_reset_result > 0 then
call('SET', key, packBytes('>I6', segment) .. packBytes(counter, total) .. counts, 'PX', windowMs + segmentMs - offset + instant - now + slack)
elseif newest then
call('DEL', key)
end
end
end
local window_edgeUnits_result
local count = (unpackBytes(counter, counts, segments * width + 1))
if edge == 0 then
window_edgeUnits_result = count
else
if edge == 1 then
window_edgeUnits_result = 0
else
local share = count * (segmentMs - offset) / segmentMs
if edge == 2 then
window_edgeUnits_result = floor(share)
else
window_edgeUnits_result = ceil(share)
end
end
end
local room = 0 > limit - total - window_edgeUnits_result and 0 or limit - total - window_edgeUnits_result
local segments_reset_result
local reset
local reset_2 = 0
for k = 0, segments do
local count_2 = (unpackBytes(counter, counts, k * width + 1))
if count_2 > 0 then
local window_offsetFor_result
if edge == 1 or count_2 <= 0 then
window_offsetFor_result = 0
else
if edge == 0 then
window_offsetFor_result = segmentMs
else
if edge == 2 then
window_offsetFor_result = floor(segmentMs * (count_2 - 1) / count_2) + 1
else
window_offsetFor_result = ceil(segmentMs * (count_2 - 0) / count_2)
end
end
end
reset_2 = 0 > (segments - k) * segmentMs + window_offsetFor_result - offset and 0 or (segments - k) * segmentMs + window_offsetFor_result - offset
break
end
end
reset = reset_2
if reset > 0 then
segments_reset_result = reset + instant - now
else
segments_reset_result = 0
end
local piece = packBytes('>BI7I7I6', outcome, room, segments_reset_result, segment)
reply = reply .. piece
if outcome == 0 then
local segments_wait_result
local wait_2
if cost > limit then
wait_2 = -1
else
if cost == 0 then
wait_2 = 0
else
local inside, wait_3 = total, (segments + 1) * segmentMs - offset
for by_2 = 0, segments do
if by_2 > 0 then
inside = inside - (unpackBytes(counter, counts, (segments - by_2) * width + 1))
end
if inside + cost <= limit then
local count_2 = (unpackBytes(counter, counts, (segments - by_2) * width + 1))
local from
local room_2 = limit - cost - inside
if edge == 1 or count_2 <= room_2 then
from = 0
else
if edge == 0 then
from = segmentMs
else
if edge == 2 then
from = floor(segmentMs * (count_2 - room_2 - 1) / count_2) + 1
else
from = ceil(segmentMs * (count_2 - room_2) / count_2)
end
end
end
if from < segmentMs then
wait_3 = 0 > by_2 * segmentMs + from - offset and 0 or by_2 * segmentMs + from - offset
break
end
end
end
wait_2 = wait_3
end
end
if wait_2 > 0 then
segments_wait_result = wait_2 + instant - now
else
segments_wait_result = wait_2
end
local segments_wait_result_2
local cost_2 = room + 1
local wait_3
if cost_2 > limit then
wait_3 = -1
else
if cost_2 == 0 then
wait_3 = 0
else
local inside, wait_4 = total, (segments + 1) * segmentMs - offset
for by_2 = 0, segments do
if by_2 > 0 then
inside = inside - (unpackBytes(counter, counts, (segments - by_2) * width + 1))
end
if inside + cost_2 <= limit then
local count_2 = (unpackBytes(counter, counts, (segments - by_2) * width + 1))
local from
local room_2 = limit - cost_2 - inside
if edge == 1 or count_2 <= room_2 then
from = 0
else
if edge == 0 then
from = segmentMs
else
if edge == 2 then
from = floor(segmentMs * (count_2 - room_2 - 1) / count_2) + 1
else
from = ceil(segmentMs * (count_2 - room_2) / count_2)
end
end
end
if from < segmentMs then
wait_4 = 0 > by_2 * segmentMs + from - offset and 0 or by_2 * segmentMs + from - offset
break
end
end
end
wait_3 = wait_4
end
end
if wait_3 > 0 then
segments_wait_result_2 = wait_3 + instant - now
else
segments_wait_result_2 = wait_3
end
local piece_2 = packBytes('>I7I7', segments_wait_result + 1, segments_wait_result_2 + 1)
reply = reply .. piece_2
end` },
  piece42,
  piece43,
] },
]

export const blockScript: LuaScript = {
  name: 'block',
  sha1: 'ab0661778ac332c9217ebdfc60d64a649681875c',
  source: `local now, slack = tonumber(ARGV[1]), 0
if now then
slack = 3600000
else
local time = redis.call('TIME')
now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local function rung_keep(key, ends, reason)
local rung, forgetAfterMs = string.match(reason, '^%z(%d+)/(%d+) ')
if not rung then return end
local stored = redis.pcall('GET', key)
if type(stored) == 'string' and #stored >= 7 and string.byte(stored) >= tonumber(rung) then return end
redis.call('SET', key, struct.pack('>BI6', rung, ends), 'PX', ends - now + forgetAfterMs + slack)
end
local ends = tonumber(ARGV[4] or now + ARGV[2])
if ends > now then
redis.call('SET', KEYS[1], string.format('%.0f', ends) .. ' ' .. ARGV[3], 'PX', ends - now + slack)
if KEYS[2] then rung_keep(KEYS[2], ends, ARGV[3]) end
end
return ends
`,
}

export const changeScript: LuaScript = {
  name: 'change',
  sha1: '41323171305ce742e8018a966c616e1b646a2798',
  source: `local call = redis.call
local function newestChange(key)
local at = 0
while true do
at = at - 1
local found = call('ZRANGE', key, at, at, 'WITHSCORES')
if not found[1] then return 0 end
if string.match(found[1], '^%l(%d+):') == found[2] then return tonumber(found[2]) end
end
end
local key, life = KEYS[1], ARGV[2]
call('PEXPIRE', key, life)
if ARGV[5] then
if call('ZREM', key, ARGV[5]) == 0 then return 0 end
call('ZADD', key, ARGV[3], ARGV[4])
call('PEXPIRE', key, life)
return 1
end
local now = ARGV[1]
if now == '' then
local time = call('TIME')
now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
end
local number = string.format('%.0f', newestChange(key) + 1)
local entry = 'b' .. number .. ':' .. now .. ':' .. ARGV[4]
call('ZADD', key, number, entry)
for _, oldest in ipairs(call('ZRANGE', key, 0, -ARGV[3] - 1)) do
call('ZREM', key, oldest)
end
call('PEXPIRE', key, life)
return entry
`,
}

export const changesPageScript: LuaScript = {
  name: 'changes-page',
  sha1: '89963a5058bb1ba98727a6c7a971437c90c9933d',
  source: `local call = redis.call
local function newestChange(key)
local at = 0
while true do
at = at - 1
local found = call('ZRANGE', key, at, at, 'WITHSCORES')
if not found[1] then return 0 end
if string.match(found[1], '^%l(%d+):') == found[2] then return tonumber(found[2]) end
end
end
local key = KEYS[1]
local below = tonumber(ARGV[1]) or newestChange(key) + 1
local from = below - ARGV[2]
local before = call('ZRANGE', key, from - 1, 1, 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')[2] or ''
return { before, call('ZRANGEBYSCORE', key, from, below - 1) }
`,
}

export const crossSlotsScript: LuaScript = {
  name: 'cross-slots',
  sha1: '83ca4415744a5ea6626bb29f7645a4768a7a4849',
  source: `if not redis.REDIS_VERSION_NUM then return -1 end
for _, key in ipairs(ARGV) do
local value = redis.pcall('GET', key)
if type(value) == 'table' then
if string.match(value.err, 'non local key') then return 0 end
return -1
end
end
return 1
`,
}

export const exchangeScript: LuaScript = {
  name: 'exchange',
  sha1: '8890d1ef9ce739dfe20a2d978d92de2363e8fa09',
  source: `local ARGV, KEYS = ARGV, KEYS
local tryCall = redis.pcall
local call, floor, ceil, max, min = redis.call, math.floor, math.ceil, math.max, math.min
local packBytes, unpackBytes = struct.pack, struct.unpack
local sub, rep, format, concat = string.sub, string.rep, string.format, table.concat
local CONSUME, PEEK, CHARGE, REFUND, RELEASE = 0, 1, 2, 3, 4
local RESERVING, TOGETHER, STRIKING, KEEPING = 8, 16, 32, 64
local REFUSED, ADMITTED, BLOCKED, ELSEWHERE, REFUNDS, EQUALS, BEGUN = 0, 1, 2, 3, 4, 8, 16
local MAY_BE_BLOCKED, SOMEBODY_WAITS = '', ' '
local BUCKET, LOG, SEGMENTS, COUNTER, CONCURRENCY = 1, 2, 3, 4, 5
local function hasPermits(kind) return kind == CONCURRENCY end
local LINGER = 10000
local function number(i)
return ARGV[i] + 0
end
local elsewhere
local function requireRead(value)
if type(value) == 'table' and not string.match(value.err, '^WRONGTYPE') then
if not string.match(value.err, 'non local key') then error(value.err) end
elsewhere = true
end
end
local clock = ARGV[1]
local now
local slack = 0
if clock ~= '' then
now, slack = clock + 0, 3600000
else
local time = call('TIME')
now = time[1] * 1000 + floor(time[2] / 1000)
end
local pieces = { packBytes('>I6', now) }
local function say(piece)
pieces[#pieces + 1] = piece
end
local first, last = {}, {}
local prepare, open, look, keep, recall, take, refund, renew, heal, report = {}, {}, {}, {}, {}, {}, {}, {}, {}, {}
local merge, state = {}, {}
local function clock_instant(at, now, horizonMs)
if at > now and at <= now + horizonMs then return at end
return now
end
local function clock_isAhead(at, now, horizonMs)
return at > now + horizonMs
end
local function ceiling_of(limit, windowMs)
return max(limit, min(2147483647, floor(9007199254740991 / windowMs)))
end
do
local STRICT, DROPPED, WEIGHTED_DOWN = 0, 1, 2
local WITH_REFUSALS = 4
local WIDE, LARGEST_NARROW = 8, 2147483647
local function window_nth(counts, k, width, format)
return (unpackBytes(format, counts, k * width + 1))
end
local function window_leaving(counts, by, segments, width, format)
local units = 0
for k = max(0, segments - by), segments - 1 do units = units + window_nth(counts, k, width, format) end
return units
end
local function window_edgeUnits(count, offset, segmentMs, edge)
if edge == STRICT then return count end
if edge == DROPPED then return 0 end
local share = (count * (segmentMs - offset)) / segmentMs
if edge == WEIGHTED_DOWN then return floor(share) end
return ceil(share)
end
local function window_offsetFor(count, room, segmentMs, edge)
if edge == DROPPED or count <= room then return 0 end
if edge == STRICT then return segmentMs end
if edge == WEIGHTED_DOWN then return floor((segmentMs * (count - room - 1)) / count) + 1 end
return ceil((segmentMs * (count - room)) / count)
end
local function window_waitFor(counts, total, offset, cost, limit, segments, segmentMs, edge, width, format)
if cost > limit then return -1 end
if cost == 0 then return 0 end
local inside, wait = total, (segments + 1) * segmentMs - offset
for by = 0, segments do
if by > 0 then inside = inside - window_nth(counts, segments - by, width, format) end
if inside + cost <= limit then
local count = window_nth(counts, segments - by, width, format)
local from = window_offsetFor(count, limit - cost - inside, segmentMs, edge)
if from < segmentMs then
wait = max(0, by * segmentMs + from - offset)
break
end
end
end
return wait
end
local function window_resetAfter(counts, offset, segments, segmentMs, edge, width, format)
local reset = 0
for k = 0, segments do
local count = window_nth(counts, k, width, format)
if count > 0 then
reset = max(0, (segments - k) * segmentMs + window_offsetFor(count, 0, segmentMs, edge) - offset)
break
end
end
return reset
end
local limit, windowMs, segments, edge, segmentMs, width, counter
local withRefusals, most
local widthOf, counterOf, mostOf = {}, {}, {}
local counts, total, segment, offset, instant, newest
prepare[SEGMENTS] = function(c)
local p = first[c]
local bytes, top, limit, isWide = 1, 256, ARGV[p], ARGV[p + 3] >= WIDE
if isWide then bytes = limit > LARGEST_NARROW and 7 or 4 end
if ARGV[p + 3] >= WITH_REFUSALS then limit = ceiling_of(limit, ARGV[p + 1]) end
while not isWide and top <= limit do
bytes = bytes + 1
top = top * 256
end
widthOf[c], counterOf[c], mostOf[c] = bytes, '>I' .. bytes, limit
end
open[SEGMENTS] = function(c)
local p = first[c]
limit, windowMs, segments, edge = ARGV[p], ARGV[p + 1], ARGV[p + 2], ARGV[p + 3]
segmentMs, width, counter, most = windowMs / segments, widthOf[c], counterOf[c], mostOf[c]
if edge >= WIDE then edge = edge - WIDE end
withRefusals = edge >= WITH_REFUSALS
if withRefusals then edge = edge - WITH_REFUSALS end
end
local function segments_wait(cost)
local wait = window_waitFor(counts, total, offset, cost, limit, segments, segmentMs, edge, width, counter)
if wait > 0 then return wait + instant - now end
return wait
end
local function segments_reset()
local reset = window_resetAfter(counts, offset, segments, segmentMs, edge, width, counter)
if reset > 0 then return reset + instant - now end
return 0
end
local function segments_life()
return windowMs + segmentMs - offset + instant - now
end
local function segments_state()
return packBytes('>I6', segment) .. packBytes(counter, total) .. counts
end
local function segments_write(key)
if segments_reset() > 0 then
call('SET', key, segments_state(), 'PX', segments_life() + slack)
elseif newest then
call('DEL', key)
end
end
local function segments_add(k, units)
local count = packBytes(counter, window_nth(counts, k, width, counter) + units)
counts = sub(counts, 1, k * width) .. count .. sub(counts, (k + 1) * width + 1)
if k < segments then total = total + units end
end
local function segments_room()
return max(0, limit - total - window_edgeUnits(window_nth(counts, segments, width, counter), offset, segmentMs, edge))
end
local function segments_bringBack()
if edge < WEIGHTED_DOWN then return end
local units = window_nth(counts, segments, width, counter)
counts = sub(counts, 1, segments * width) .. rep('\\0', width)
segments_add(segments - 1, max(0, min(units, most - total)))
end
look[SEGMENTS] = function(key, cost)
local stored
local at = 1
stored = tryCall('GET', key)
if stored and #stored ~= 6 + (segments + 2) * width then
requireRead(stored)
stored = false
end
newest, instant = nil, now
if stored then
newest = unpackBytes('>I6', stored, at)
instant = clock_instant(newest * segmentMs, now, windowMs)
end
segment = floor(instant / segmentMs)
offset = instant - segment * segmentMs
local by = stored and max(0, segment - newest) or segments + 1
if by > segments then
total, counts = 0, rep('\\0', (segments + 1) * width)
else
total, counts = unpackBytes(counter, stored, at + 6), sub(stored, at + 6 + width, at + 5 + (segments + 2) * width)
if by > 0 then
total = total - window_leaving(counts, by, segments, width, counter)
counts = rep('\\0', by * width) .. sub(counts, 1, (segments + 1 - by) * width)
end
end
if newest and clock_isAhead(newest * segmentMs, now, windowMs) then segments_bringBack() end
return segments_wait(cost)
end
take[SEGMENTS] = function(key, cost)
local room
if withRefusals then room = max(0, most - total) else room = segments_room() end
segments_add(0, min(cost, room))
local isNewest = newest == segment
if isNewest then
call('SETRANGE', key, '6', packBytes(counter, total) .. sub(counts, 1, width))
else
segments_write(key)
end
end
refund[SEGMENTS] = function(key, cost, receipt)
local k = segment - receipt
if not newest or k < 0 or k > segments then return end
segments_add(k, -min(cost, window_nth(counts, k, width, counter)))
segments_write(key)
end
heal[SEGMENTS] = function(key)
if newest and clock_isAhead(newest * segmentMs, now, windowMs) then segments_write(key) end
end
report[SEGMENTS] = function(key, cost, outcome)
local room = segments_room()
say(packBytes('>BI7I7I6', outcome, room, segments_reset(), segment))
if outcome == REFUSED then
say(packBytes('>I7I7', segments_wait(cost) + 1, segments_wait(room + 1) + 1))
end
end
merge[SEGMENTS] = function(key, from, to)
for at = from, to, 2 do
local k, units = max(0, segment - number(at)), number(at + 1)
if k <= segments then
local counted = window_nth(counts, k, width, counter)
local room = most - counted
if k < segments then room = most - total end
segments_add(k, max(-counted, min(units, room)))
end
end
segments_write(key)
end
state[SEGMENTS] = function()
local found, said = 0, {}
local at = string.find(counts, '[^%z]')
while at do
local k = floor((at - 1) / width)
found = found + 1
said[found] = packBytes('>I2I7', k, window_nth(counts, k, width, counter))
at = string.find(counts, '[^%z]', (k + 1) * width + 1)
end
return packBytes('>I6I2', segment, found) .. concat(said)
end
end
do
local function counter_startOf(at, windowMs, byClock)
if byClock then return floor(at / windowMs) * windowMs end
return at
end
local function counter_waitFor(count, endsIn, cost, limit)
if cost > limit then return -1 end
if count + cost <= limit or cost == 0 then return 0 end
return endsIn
end
local own, limit, windowMs, byClock
local most
local newCountOf, newStateOf, newLifeOf = {}, {}, {}
local count, start, since
prepare[COUNTER] = function(c)
newCountOf[c] = nil
end
open[COUNTER] = function(c)
local p = first[c]
own = c
limit, windowMs, byClock = ARGV[p], ARGV[p + 1], ARGV[p + 3] == 1
most = limit
if ARGV[p + 2] == 1 then most = ceiling_of(limit, windowMs) end
end
local function counter_write(key)
if count == 0 then
call('DEL', key)
elseif since == start then
call('SETRANGE', key, '0', packBytes('>I7', count))
elseif not since then
if newCountOf[own] ~= count then
newCountOf[own], newStateOf[own] = count, packBytes('>I7I6', count, start)
newLifeOf[own] = format('%d', start + windowMs - now + slack)
end
call('SET', key, newStateOf[own], 'PX', newLifeOf[own])
else
call('SET', key, packBytes('>I7I6', count, start), 'PX', start + windowMs - now + slack)
end
end
look[COUNTER] = function(key, cost)
local instant, isOver = now, true
since = nil
local stored = tryCall('GET', key)
if stored and #stored == 13 then
count, since = unpackBytes('>I7I6', stored)
else
requireRead(stored)
end
if since then
instant = clock_instant(since, now, windowMs)
isOver = instant >= since + windowMs
end
if isOver then count = 0 end
if not isOver and since <= instant then start = since else start = counter_startOf(instant, windowMs, byClock) end
return counter_waitFor(count, start + windowMs - now, cost, limit)
end
take[COUNTER] = function(key, cost)
count = max(count, min(most, count + cost))
counter_write(key)
end
refund[COUNTER] = function(key, cost, receipt)
if not since or start ~= receipt then return end
count = max(0, count - cost)
counter_write(key)
end
heal[COUNTER] = function(key)
if since and clock_isAhead(since, now, windowMs) then counter_write(key) end
end
report[COUNTER] = function(key, cost, outcome)
say(packBytes('>BI7I6', outcome, count, start))
end
merge[COUNTER] = function(key, from, to)
for at = from, to, 2 do
local started, units = number(at), number(at + 1)
if started + windowMs > now then
if count == 0 and not byClock then start = min(now, started) end
count = max(0, min(most, count + units))
end
end
if since or count > 0 then counter_write(key) end
end
state[COUNTER] = function()
return packBytes('>I7I6', count, start)
end
end
local key = 1
if number(2) > 0 then KEYS, key = ARGV, number(2) end
local anyBlocked = true
if number(3) == 1 then
anyBlocked = tryCall('GET', KEYS[key])
key = key + 1
end
local function isBlocked(from, to)
for k = from, to do
local value = tryCall('GET', KEYS[k])
requireRead(value)
if type(value) == 'string' then
local ends = string.match(value, '^(%d+) ')
if ends and tonumber(ends) > now then return true end
end
end
return false
end
local a = 5
for _ = 1, number(4) do
local kind, params = number(a), number(a + 1)
first[1], last[1] = a + 2, a + 1 + params
a = a + 2 + params
for p = first[1], last[1] do ARGV[p] = number(p) end
local blockKeys, counts = number(a), number(a + 1)
a = a + 2
for _ = 1, counts do
if prepare[kind] then prepare[kind](1) end
open[kind](1)
local own = KEYS[key + blockKeys]
local numbers = number(a)
elsewhere = false
local outcome = ADMITTED
if anyBlocked and isBlocked(key, key + blockKeys - 1) then outcome = BLOCKED end
look[kind](own, 0)
if elsewhere then
say(packBytes('B', ELSEWHERE))
else
if numbers > 0 then merge[kind](own, a + 1, a + numbers) else heal[kind](own) end
say(packBytes('B', outcome) .. state[kind]())
end
a = a + 1 + numbers
key = key + blockKeys + 1
end
end
return concat(pieces)
`,
}

export const figuresScript: LuaScript = {
  name: 'figures',
  sha1: '2898d625540ce3e321dc51573d7d1908947b07c6',
  source: `local call = redis.call
local sent, live, processes = KEYS[1], KEYS[2], KEYS[3]
local number, known, width = tonumber(ARGV[5]), tonumber(ARGV[6]), 2
if not known then width = 3 end
local function whole(count)
return string.format('%.0f', count)
end
local function dropForeign(key, reply)
if type(reply) ~= 'table' or not reply.err then return end
if not string.find(reply.err, 'WRONGTYPE', 1, true) then error(reply.err, 0) end
call('DEL', key)
end
local function othersOf(name)
local code = string.match(name, '|([^|]*)$')
return code and 'other||' .. code or name
end
local now = tonumber(ARGV[1])
if not now then
local time = call('TIME')
now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local minute = math.floor((now - ARGV[2]) / 60000)
if minute ~= tonumber(ARGV[3]) then return { whole(now), 'minute' } end
dropForeign(sent, redis.pcall('HMGET', sent, '#'))
dropForeign(processes, redis.pcall('ZREMRANGEBYSCORE', processes, '-inf', whole(now - 10000)))
for k = 4, 5 do
dropForeign(KEYS[k], redis.pcall('ZSCORE', KEYS[k], '=p'))
dropForeign(KEYS[k], redis.pcall('ZCARD', KEYS[k]))
end
local before = call('HMGET', sent, '#', '@')
local last, lastMinute = tonumber(before[1]), tonumber(before[2]) or -1
if known and (not last or last < known) then return { whole(now), 'all' } end
if last and last >= number then return { whole(now), 'added' } end
local names = {}
for a = 9, #ARGV, width do names[#names + 1] = ARGV[a] end
local earlier = #names > 0 and call('HMGET', sent, unpack(names)) or {}
local more, counts = {}, { '#', ARGV[5], '@', whole(minute) }
for n, name in ipairs(names) do
local at = 9 + (n - 1) * width
local count = tonumber(ARGV[at + 1])
local added = tonumber(earlier[n] or '') or (not last and tonumber(ARGV[at + 2] or '')) or 0
if count > added then more[#more + 1] = { name, whole(count - added) } end
if count >= added then
counts[#counts + 1] = name
counts[#counts + 1] = ARGV[at + 1]
end
end
call('PEXPIRE', sent, 3600000)
call('HSET', sent, unpack(counts))
call('PEXPIRE', sent, 3600000)
local function add(key, life, isFirst)
if isFirst then call('ZADD', key, 'INCR', 1, '=p') end
for _, entry in ipairs(more) do
local name = entry[1]
if call('ZCARD', key) >= tonumber(ARGV[8]) and not call('ZSCORE', key, name) then name = othersOf(name) end
call('ZADD', key, 'INCR', entry[2], name)
end
call('PEXPIRE', key, life)
end
add(KEYS[4], 604800000, lastMinute ~= minute)
add(KEYS[5], 7776000000, math.floor(lastMinute / 60) ~= math.floor(minute / 60))
if ARGV[7] ~= '' then
call('SET', live, ARGV[7], 'PX', 10000)
call('ZADD', processes, whole(now), ARGV[4])
call('PEXPIRE', processes, 3600000)
call('ZREMRANGEBYSCORE', processes, whole(now + 10000), '+inf')
end
return { whole(now), 'added' }
`,
}

export const forgetScript: LuaScript = {
  name: 'forget',
  sha1: '45d46fd86f844290e839e837dfc75cee95632d0a',
  source: `local call = redis.call
local reply = call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', 1000)
for _, key in ipairs(reply[2]) do
if ARGV[3] == '' then
call('DEL', key)
else
redis.pcall('ZREM', key, ARGV[3])
end
end
return reply[1]
`,
}

export const keptScript: LuaScript = {
  name: 'kept',
  sha1: '286ec3cf0269f6b2154020973f881de3333da28b',
  source: `return redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', 1000)
`,
}

export const indexScript: LuaScript = {
  name: 'index',
  sha1: 'fb5419f68d8b84beaa8d139cd3edbd744053e483',
  source: `local call, tryCall, format, match = redis.call, redis.pcall, string.format, string.match
local now, slack
if ARGV[1] ~= '' then
now, slack = tonumber(ARGV[1]), 3600000
else
local time = call('TIME')
now, slack = time[1] * 1000 + math.floor(time[2] / 1000), 0
end
local entries, changes, marker = KEYS[1], KEYS[2], KEYS[3]
local function rung_keep(key, ends, reason)
local rung, forgetAfterMs = string.match(reason, '^%z(%d+)/(%d+) ')
if not rung then return end
local stored = redis.pcall('GET', key)
if type(stored) == 'string' and #stored >= 7 and string.byte(stored) >= tonumber(rung) then return end
redis.call('SET', key, struct.pack('>BI6', rung, ends), 'PX', ends - now + forgetAfterMs + slack)
end
local function text(number)
return format('%.0f', number)
end
local function read(field)
local value = call('HMGET', entries, field)[1]
local ends, since, times, ended = match(value or '', '^(%d+) (%d+) (%d+) ([01]) ')
return tonumber(ends), tonumber(since), tonumber(times), tonumber(ended), value
end
local life = math.max(1000, ARGV[3] + 86400000 - now)
for _, key in ipairs({ entries, changes }) do
local left = call('PTTL', key)
call('PEXPIRE', key, left > 0 and left or 86400000)
end
local version, incarnation, epoch = match(tryCall('HMGET', entries, '')[1] or '', '^(%d+) (%S+) (%d+)$')
local size = tryCall('ZCARD', changes)
if not version or type(size) == 'table' or call('HLEN', entries) ~= size + 1 then
call('DEL', entries, changes)
version, incarnation = 0, ARGV[2]
end
version, epoch = tonumber(version), math.max(tonumber(epoch or 0), tonumber(ARGV[3]))
local reply = { text(now), text(version), '' }
for _ = 1, 2 do
local size = call('ZCARD', changes)
if size > 0 then
local rank = version - math.floor(version / size) * size
local field = call('ZRANGE', changes, rank, rank)[1]
local ends = read(field)
if not ends or ends + slack <= now then
call('HDEL', entries, field)
call('ZREM', changes, field)
end
end
end
local function erasedSince(field)
local last = 0
for salt in string.gmatch(incarnation, '~([^~]+)') do
local _, since = read('["","#' .. salt .. '.' .. redis.sha1hex(salt .. field) .. '"]')
last = math.max(last, since or 0)
end
return last
end
for a = 4, #ARGV, 6 do
local field, op = ARGV[a], ARGV[a + 1]
local first, second, third, reason = tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4]), ARGV[a + 5]
local knownEnds, knownSince, knownTimes, knownEnded, value = read(field)
local erased, under = erasedSince(field), field
local instant = math.max(now, epoch + 1, (knownSince or 0) + (op == 'BLOCK' and knownEnded or 0), erased + 1)
local ends, since, times, ended, applies
if op == 'BLOCK' then
ends, times, ended, applies = second > 0 and second or now + first, (knownTimes or 0) + 1, '0', true
since = instant
elseif op == 'KEEP' then
ends, since, ended = first, second, '0'
times = third > 0 and third or (knownTimes or 0) + 1
applies = ends > now and since > math.max(epoch, erased) and (not knownSince or knownSince < since)
else
ends, times, ended = math.max(first, second > 0 and 0 or knownEnds or 0), knownTimes or 0, '1'
since = third > 0 and third or instant
applies = ends + slack > now and (third == 0 or ((knownSince or 0) <= third and erased <= third))
end
if applies and op == 'ERASE' then
local otherEnds, otherSince = read(reason)
ends, since, times = math.max(ends, otherEnds or 0), math.max(since, otherSince or 0), 0
under, reason = reason, ''
end
local salt = match(under, '^%["","#(%d+%.[%w_-]+)%.%x+"%]$')
if applies and salt and not string.find(incarnation .. '~', '~' .. salt .. '~', 1, true) then
incarnation = incarnation .. '~' .. salt
end
if applies then
value = text(ends) .. ' ' .. text(since) .. ' ' .. text(times) .. ' ' .. ended .. ' ' .. reason
version = version + 1
call('ZADD', changes, version, under)
call('PEXPIRE', changes, math.max(life, call('PTTL', changes)))
call('HSET', entries, under, value)
if under ~= field then
call('HDEL', entries, field)
call('ZREM', changes, field)
end
life = math.max(life, ends - now + slack)
end
if marker then
local block, strikes = KEYS[4 + (a - 4) / 3], KEYS[5 + (a - 4) / 3]
if op == 'END' or op == 'ERASE' then
if third == 0 or (applies and knownSince) then call('DEL', block, strikes) end
elseif applies then
local ms = ends - now + slack
call('SET', block, text(ends) .. ' ' .. reason, 'PX', ms)
if call('PTTL', marker) <= ms then call('SET', marker, '1', 'PX', ms) end
rung_keep(strikes, ends, reason)
end
end
reply[#reply + 1] = (applies and 1 or 0) .. (value or '')
end
reply[3] = text(version) .. ' ' .. incarnation .. ' ' .. text(epoch)
call('HSET', entries, '', reply[3])
for _, key in ipairs({ entries, changes }) do
if call('PTTL', key) < life then call('PEXPIRE', key, life) end
end
return reply
`,
}

export const indexClearScript: LuaScript = {
  name: 'index-clear',
  sha1: '8690d9d2031cadf5cba9e71dd2f3f52dc684c7c9',
  source: `local call, format = redis.call, string.format
local now = tonumber(ARGV[1])
if not now then
local time = call('TIME')
now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local entries, changes = KEYS[1], KEYS[2]
call('PEXPIRE', entries, math.max(1, call('PTTL', entries)))
local version, incarnation = string.match(call('HMGET', entries, '')[1] or '', '^(%d+) (%S+) (%d+)$')
local fields = call('ZRANGE', changes, 0, ARGV[3] - 1)
for _, field in ipairs(fields) do
call('HDEL', entries, field)
call('ZREM', changes, field)
end
call('HSET', entries, '', format('%.0f %s %.0f', (version or 0) + 1, incarnation or ARGV[2], now))
call('PEXPIRE', entries, math.max(86400000, call('PTTL', entries)))
table.insert(fields, 1, format('%.0f', now))
return fields
`,
}

export const indexPageScript: LuaScript = {
  name: 'index-page',
  sha1: '351c8ebce1597a4c8acd5540058678c02166d538',
  source: `local call = redis.call
local now = ARGV[1]
if now == '' then
local time = call('TIME')
now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
end
local entries, changes = KEYS[1], KEYS[2]
local first, size = redis.pcall('HMGET', entries, ''), redis.pcall('ZCARD', changes)
for _, found in ipairs({ first, type(size) == 'table' and size or first }) do
if found.err and not string.match(found.err, '^WRONGTYPE') then error(found.err) end
end
local head = first[1] or ''
if head ~= '' and (type(size) == 'table' or call('HLEN', entries) ~= size + 1) then head = '' end
local reply = { now, head, 1 }
if head ~= '' and ARGV[4] ~= '' and tonumber(call('ZSCORE', changes, ARGV[4]) or -1) ~= tonumber(ARGV[2]) then reply[3] = 0 end
if head ~= '' then
local found = call('ZRANGEBYSCORE', changes, '(' .. ARGV[2], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[3])
for i = 1, #found, 2 do
reply[#reply + 1] = found[i + 1]
reply[#reply + 1] = found[i]
reply[#reply + 1] = call('HMGET', entries, found[i])[1] or ''
end
end
return reply
`,
}

export const markWaitingScript: LuaScript = {
  name: 'mark-waiting',
  sha1: 'fcb138ba055ea30ca90a3b32111557192c30b1c4',
  source: `local function mark_waiting(marker, ms)
if redis.call('PTTL', marker) < ms then redis.call('SET', marker, '', 'PX', string.format('%.0f', ms)) end
end
mark_waiting(KEYS[1], tonumber(ARGV[1]))
`,
}

export const permitsScript: LuaScript = {
  name: 'permits',
  sha1: '4993a0f8f7be6779b787b2b608ba4e8d3ab6ac57',
  source: `local call, floor = redis.call, math.floor
local clock = ARGV[1]
local now
local slack = 0
if clock ~= '' then
now, slack = clock + 0, 3600000
else
local time = call('TIME')
now = time[1] * 1000 + floor(time[2] / 1000)
end
local from = string.format('(%.0f', now)
local count = #KEYS > 0 and #KEYS or (#ARGV - 1) / 2
local found = {}
for i = 1, count do
local held = redis.pcall('ZCOUNT', KEYS[i] or ARGV[1 + count + i], from, '+inf')
found[i] = type(held) == 'number' and held > tonumber(ARGV[1 + i]) and '0' or '1'
end
return table.concat(found)
`,
}

export const probeScript: LuaScript = {
  name: 'probe',
  sha1: 'bcddce2aa234d84a76e27e04454aa0142516aff5',
  source: `for _, command in ipairs(ARGV) do redis.call(unpack(cjson.decode(command))) end
`,
}

export const refusalsScript: LuaScript = {
  name: 'refusals',
  sha1: 'ef5268f29935d3e3b01707eebc1c6982d72c91b7',
  source: `local call = redis.call
local kept = tonumber(ARGV[1])
local slices = #KEYS / 2
for slice = 1, slices do
local counts, sums, life = KEYS[2 * slice - 1], KEYS[2 * slice], ARGV[3 + slice]
call('PEXPIRE', counts, life)
for a = 4 + slices, #ARGV, 2 do
call('ZADD', counts, 'INCR', ARGV[a + 1], ARGV[a])
end
local size, lost = call('ZCARD', counts), 0
if size > 2 * kept then
lost = tonumber(call('ZRANGE', counts, size - kept - 1, size - kept - 1, 'WITHSCORES')[2])
call('ZREMRANGEBYSCORE', counts, '-inf', lost)
for _, identity in ipairs(call('ZRANGE', counts, 0, -1)) do
call('ZADD', counts, 'INCR', -lost, identity)
end
end
local sum = call('HMGET', sums, 'refusals', 'error')
call('HSET', sums, 'refusals', (tonumber(sum[1]) or 0) + ARGV[2], 'error', (tonumber(sum[2]) or 0) + ARGV[3] + lost)
call('PEXPIRE', counts, life)
call('PEXPIRE', sums, life)
end
`,
}

export const refusalsSliceScript: LuaScript = {
  name: 'refusals-slice',
  sha1: '13092f8c07a44908d6cc3e65e69e6a08e189427a',
  source: `local reply = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
local sum = redis.call('HMGET', KEYS[2], 'refusals', 'error')
table.insert(reply, 1, sum[2] or '0')
table.insert(reply, 1, sum[1] or '0')
return reply
`,
}

export const strikeScript: LuaScript = {
  name: 'strike',
  sha1: 'a365079e33f45c6885d01d4039e6a10ef8826d97',
  source: `local ARGV, KEYS = ARGV, KEYS
local tryCall = redis.pcall
local call, floor, max, min = redis.call, math.floor, math.max, math.min
local packBytes = struct.pack
local function number(i)
return ARGV[i] + 0
end
local function requireRead(value)
if type(value) == 'table' and not string.match(value.err, '^WRONGTYPE') then error(value.err) end
end
local now, slack
if ARGV[1] ~= '' then
now, slack = number(1), 3600000
else
local time = call('TIME')
now, slack = time[1] * 1000 + floor(time[2] / 1000), 0
end
local function clock_instant(at, now, horizonMs)
if at > now and at <= now + horizonMs then return at end
return now
end
local function clock_isAhead(at, now, horizonMs)
return at > now + horizonMs
end
local function strikes_last(strikes, now)
if strikes == '' then return now end
return (struct.unpack('>I6', strikes, #strikes - 7))
end
local function strikes_until(strikes, at)
local kept = ''
for i = 1, #strikes, 8 do
local since, weight = struct.unpack('>I6I2', strikes, i)
kept = kept .. packBytes('>I6I2', min(since, at), weight)
end
return kept
end
local function strikes_live(strikes, at, withinMs)
local from, units = 1, 0
for i = 1, #strikes, 8 do
local since, weight = struct.unpack('>I6I2', strikes, i)
if at - since >= withinMs then from = i + 8 else units = units + weight end
end
return string.sub(strikes, from), units
end
local function strikes_rung(rung, since, at, forgetAfterMs)
if at - since >= forgetAfterMs then return 0 end
return rung
end
local function strikes_end(rung, since, strikes, withinMs, forgetAfterMs)
local ends = 0
if strikes ~= '' then ends = strikes_last(strikes, 0) + withinMs end
if rung > 0 then ends = max(ends, since + forgetAfterMs) end
return ends
end
local function strikes_base(key, cut, names)
return string.sub(key, 1, -1 - cut) .. names
end
local function strikes_write(key, rung, since, strikes, withinMs, forgetAfterMs)
local life = strikes_end(rung, since, strikes, withinMs, forgetAfterMs) - now
if life > 0 then
call('SET', key, packBytes('>BI6', rung, since) .. strikes, 'PX', life + slack)
else
call('DEL', key)
end
end
local function strikes_strike(base, marker, weight, jitter, note, p, to)
local after, withinMs, forgetAfterMs = number(p), number(p + 1), number(p + 2)
local key = base .. 'strikes'
local stored = tryCall('GET', key)
local rung, since, strikes = 0, now, ''
if stored and #stored >= 7 and floor((#stored - 7) / 8) * 8 == #stored - 7 then
rung, since = struct.unpack('>BI6', stored)
strikes = string.sub(stored, 8)
else
requireRead(stored)
end
local last = strikes_last(strikes, now)
local at = clock_instant(last, now, withinMs)
if last > at then strikes = strikes_until(strikes, at) end
rung = strikes_rung(rung, since, at, forgetAfterMs)
local live, count = strikes_live(strikes, at, withinMs)
count = count + weight
local ends, reason = 0, ''
if count < after then
if rung > 0 then since = max(at, since) else since = at end
strikes_write(key, rung, since, live .. packBytes('>I6I2', at, weight), withinMs, forgetAfterMs)
else
rung = min(rung + 1, to - p - 2)
local life = number(p + 2 + rung) + jitter
ends = now + life
reason = '\\0' .. string.format('%.0f', rung) .. ' ' .. string.format('%.0f', count) .. ' ' .. note
strikes_write(key, rung, ends, '', withinMs, forgetAfterMs)
call('SET', base .. 'block', string.format('%.0f', ends) .. ' ' .. reason, 'PX', life + slack)
if marker ~= '' and call('PTTL', marker) <= life + slack then call('SET', marker, '1', 'PX', life + slack) end
end
return ends, reason
end
local weight, lastBlock, ends, reason, begun = number(2), 1 + number(5), 0, '', '0'
for b = 2, lastBlock do
local block = tryCall('GET', KEYS[b])
requireRead(block)
if type(block) == 'string' then
local last, said = string.match(block, '^(%d+) (.*)$')
if last and tonumber(last) > max(now, ends) then ends, reason = tonumber(last), said end
end
end
if weight == 0 then
local stored = tryCall('GET', KEYS[1])
requireRead(stored)
if type(stored) == 'string' and #stored >= 7 then
local rung, since = struct.unpack('>BI6', stored)
strikes_write(KEYS[1], rung, since, '', number(7), number(8))
end
elseif ends == 0 then
local base = strikes_base(KEYS[1], #'strikes', '')
ends, reason = strikes_strike(base, KEYS[lastBlock + 1] or '', weight, number(3), ARGV[4], 6, #ARGV)
if ends > 0 then begun = '1' end
end
return { string.format('%.0f', now), string.format('%.0f', ends), reason, begun }
`,
}

export const turnsScript: LuaScript = {
  name: 'turns',
  sha1: 'fa6d07209df88c1f094aefb2f21ed3d94e43f81f',
  source: `local time = redis.call('TIME')
local turnsNow = time[1] * 1000 + math.floor(time[2] / 1000)
local function mark_waiting(marker, ms)
if redis.call('PTTL', marker) < ms then redis.call('SET', marker, '', 'PX', string.format('%.0f', ms)) end
end
local ENTRY = 34
local function turns_others(key, process)
local record = redis.pcall('GET', key)
if type(record) == 'table' and not string.match(record.err, '^WRONGTYPE') then error(record.err) end
local others, latest = '', turnsNow
if type(record) ~= 'string' or #record % ENTRY ~= 0 then return others, latest end
for at = 1, #record, ENTRY do
local ends = struct.unpack('>I6', record, at + 28)
if ends > turnsNow and string.sub(record, at, at + 11) ~= process then
others = others .. string.sub(record, at, at + ENTRY - 1)
if ends > latest then latest = ends end
end
end
return others, latest
end
local function turns_write(key, process, ttlMs, marker, a, others, latest)
local record = others
for _ = 1, ARGV[a] do
local class, aheadMs = ARGV[a + 1], ARGV[a + 2]
record = record .. process .. struct.pack('>ddI6', class, turnsNow - aheadMs, turnsNow + ttlMs)
if turnsNow + ttlMs > latest then latest = turnsNow + ttlMs end
a = a + 2
end
if record == '' then
redis.call('DEL', key)
return false
end
redis.call('SET', key, record, 'PX', string.format('%.0f', latest - turnsNow))
if marker ~= '' then mark_waiting(marker, latest - turnsNow) end
return true
end
local others, latest = turns_others(KEYS[1], ARGV[1])
turns_write(KEYS[1], ARGV[1], ARGV[2], ARGV[3], 4, others, latest)
`,
}
