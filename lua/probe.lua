--- Tries commands from a script. Stops at the first one that Redis refuses.
-- KEYS   the keys that the commands name
-- ARGV   the commands, each an array of words in JSON
for _, command in ipairs(ARGV) do redis.call(unpack(cjson.decode(command))) end
