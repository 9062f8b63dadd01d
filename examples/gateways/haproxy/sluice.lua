-- Asks a decider of Sluice about each request. Needs HAProxy 2.5 or later, built with Lua.
--
--   lua-load sluice.lua                        in the section `global`
--   http-request lua.sluice <url> <mode>       url: http://ADDRESS:PORT/v1/decide
--                                              mode: `closed` refuses while the decider is away, `open` admits
--
-- Beside it, in the same frontend, for admitted requests:
--   http-response set-header RateLimit %[var(txn.sluice_ratelimit)] if { var(txn.sluice_ratelimit) -m found }
--
-- It uses core.tcp(), as core.httpclient() of HAProxy 2.6 sends up to four requests, each with the whole timeout and a charge.

-- The whole time of a request to the decider in ms, connection included, so that none waits 2 s. Longer than the decider waits for Redis.
local TIMEOUT_MS = 1900

-- The pause between two attempts to reach a decider that is away, each by one request, in ms.
local ASK_AGAIN_AFTER_MS = 1000
local is_away, ask_again_at = false, 0

-- Fields that the decider does not receive: those of one connection, those of the body, which stays here, and those set below.
local LEFT_OUT = {
  ["connection"] = true, ["keep-alive"] = true, ["proxy-connection"] = true, ["te"] = true, ["trailer"] = true,
  ["transfer-encoding"] = true, ["upgrade"] = true, ["expect"] = true, ["content-length"] = true, ["host"] = true,
  ["x-original-method"] = true, ["x-original-uri"] = true, ["x-original-host"] = true, ["x-original-for"] = true,
  ["x-sluice-token"] = true,
}

-- Headers of the decider's response for the client.
local PASSED_ON = { "ratelimit", "ratelimit-policy", "retry-after", "cache-control", "content-type" }

local function now_ms()
  local now = core.now()
  return now.sec * 1000 + now.usec / 1000
end

-- The request to the decider. It uses HTTP/1.0, so that the response ends with the connection, and has no chunks.
local function question(txn, path, host)
  local lines = { "GET " .. path .. " HTTP/1.0", "host: " .. host }
  for name, values in pairs(txn.http:req_get_headers()) do
    if not LEFT_OUT[name] then
      for _, value in pairs(values) do lines[#lines + 1] = name .. ": " .. value end
    end
  end
  lines[#lines + 1] = "x-original-method: " .. txn.f:method()
  lines[#lines + 1] = "x-original-uri: " .. txn.f:pathq()
  lines[#lines + 1] = "x-original-host: " .. (txn.f:req_fhdr("host") or "")
  -- The address of the connection, whatever the headers claim.
  lines[#lines + 1] = "x-original-for: " .. txn.f:src()
  local token = os.getenv("SLUICE_TOKEN")
  if token then lines[#lines + 1] = "x-sluice-token: " .. token end
  return table.concat(lines, "\r\n") .. "\r\n\r\n"
end

-- The lines until the decider closes the connection; nil where it does not in time. The timeout of a socket begins again with each
-- read, and perhaps once more before a line is complete. Therefore the first byte is read alone, in all the remaining time, and then
-- whole lines, each in half of the rest: a slow sender does not prolong it.
local function lines_of(socket, ends_at)
  local lines, first = {}, nil
  while true do
    local left = ends_at - now_ms()
    if left <= 0 then return nil end
    socket:settimeout(left / (first and 2000 or 1000))
    local part = socket:receive(first and "*l" or 1)
    -- HAProxy reports an end and a timeout in the same way.
    if not part then return now_ms() < ends_at and lines or nil end
    if first then lines[#lines + 1] = part end
    first = first or part
  end
end

-- The status of a response, its headers by lower-case names, and its body; nil where it is no response.
local function parsed(lines)
  -- The lines lack the first byte.
  local status = lines[1] and lines[1]:match("^TTP/1%.%d (%d%d%d)")
  if not status then return nil end
  local headers, at = {}, 2
  while lines[at] ~= "" do
    -- The response ended within its head.
    if not lines[at] then return nil end
    local name, value = lines[at]:match("^([^:]+):%s*(.*)$")
    if name then headers[name:lower()] = value end
    at = at + 1
  end
  return { status = tonumber(status), headers = headers, body = table.concat(lines, "\n", at + 1) }
end

-- The response of the decider; nil where there is none in time.
local function exchange(txn, url)
  local ends_at = now_ms() + TIMEOUT_MS
  local host, port, path = url:match("^http://([^/]+):(%d+)(/.*)$")
  if not host then
    core.Alert("sluice.lua: expected http://ADDRESS:PORT/v1/decide, got " .. url)
    return nil
  end
  local socket = core.tcp()
  socket:settimeout(TIMEOUT_MS / 1000)
  local lines
  if socket:connect(host:gsub("[%[%]]", ""), tonumber(port)) and socket:send(question(txn, path, host)) > 0 then
    lines = lines_of(socket, ends_at)
  end
  socket:close()
  return lines and parsed(lines)
end

-- The same while the decider counts as away: one request at a time tries it, and the others get nil at once.
local function ask(txn, url)
  if is_away then
    local now = now_ms()
    if now < ask_again_at then return nil end
    ask_again_at = now + TIMEOUT_MS + ASK_AGAIN_AFTER_MS
  end
  local response = exchange(txn, url)
  is_away = response == nil
  if is_away then ask_again_at = now_ms() + ASK_AGAIN_AFTER_MS end
  return response
end

-- haproxy.cfg refuses requests without this mark.
local function admit(txn)
  txn:set_var("txn.sluice_admitted", "1")
end

local function refuse(txn, status, headers, body)
  local reply = txn:reply({ status = status })
  for name, value in pairs(headers) do reply:add_header(name, value) end
  reply:set_body(body)
  txn:done(reply)
end

core.register_action("sluice", { "http-req" }, function(txn, url, mode)
  local response = ask(txn, url)
  if not response and mode == "open" then return admit(txn) end
  -- A response without a decision, such as an error of the configuration, refuses in both modes.
  if not response or not response.headers["x-sluice-decided-by"] then
    local body = '{"type":"about:blank","title":"Service Unavailable","status":503}'
    local headers = { ["content-type"] = "application/problem+json", ["cache-control"] = "no-store", ["retry-after"] = "1" }
    return refuse(txn, 503, headers, body)
  end
  if response.status >= 200 and response.status < 300 then
    for _, name in ipairs({ "ratelimit", "ratelimit-policy" }) do
      local value = response.headers[name]
      if value then txn:set_var("txn.sluice_" .. name:gsub("-", "_"), value) end
    end
    return admit(txn)
  end
  local headers = {}
  for _, name in ipairs(PASSED_ON) do headers[name] = response.headers[name] end
  refuse(txn, response.status, headers, response.body)
end, 2)
