-- Tables, strings, closures, coroutines, errors and the collector; prints what it computed.
local rounds = tonumber(arg[1])
local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end
print("fib", fib(14 + rounds))

local words = {}
for i = 1, 300 * rounds do
  local word = ("w%d"):format(i * 7919 % 101)
  words[word] = (words[word] or 0) + i
end
local names = {}
for name in pairs(words) do names[#names + 1] = name end
table.sort(names, function(a, b) return words[a] > words[b] or words[a] == words[b] and a < b end)
print("words", #names, names[1], words[names[1]], table.concat(names, ",", 1, 5))

local produce = coroutine.wrap(function() for i = 1, 200 do coroutine.yield(i * i) end end)
local sum = 0
for _ = 1, 200 do sum = sum + produce() end
print("coroutine", sum)

local text = ("the quick brown fox "):rep(20 * rounds)
print("strings", #text:gsub("%w+", string.upper), select(2, text:gsub("o", "0")), text:find("fox", 50, true))

local ok, message = pcall(function() error({ code = 7 }) end)
print("error", ok, type(message), message.code)
print("error", pcall(string.rep))

local Point = {}
Point.__index = Point
Point.__add = function(a, b) return setmetatable({ x = a.x + b.x }, Point) end
local point = setmetatable({ x = 0 }, Point)
for i = 1, 500 * rounds do point = point + setmetatable({ x = i }, Point) end
print("metatables", point.x)

local weak = setmetatable({}, { __mode = "v" })
for i = 1, 100 do weak[i] = {} end
collectgarbage()
print("collector", next(weak) == nil)
print("pack", string.unpack("<i4d", string.pack("<i4d", -5, 0.25)))
print("numbers", 7 // 2, 7 % -3, 2 ^ 10, 1 / 3, math.tointeger(3.0), 5 << 3, "10" + 5)
