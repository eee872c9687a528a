-- Binary trees that come and go beside a tree that stays, and strings that are joined and split.
-- Usage: lua5.4 trees.lua PERCENT
local percent = tonumber(arg[1])

local function tree(depth)
  if depth == 0 then return { false, false } end
  return { tree(depth - 1), tree(depth - 1) }
end

local function nodes(node)
  if not node[1] then return 1 end
  return 1 + nodes(node[1]) + nodes(node[2])
end

local stays = tree(16)
local count = 0
for _ = 1, math.max(1, 120 * percent // 100) do
  for depth = 4, 14, 2 do count = count + nodes(tree(depth)) end
end

local words, lengths = {}, 0
for i = 1, math.max(1, 10000 * percent) do
  local key = string.format("%x", i * 2654435761 % 65521)
  words[key] = (words[key] or "") .. string.rep("w", i % 7)
  if i % 16 == 0 then
    for part in (words[key] .. ":" .. key):gmatch("[^:]+") do lengths = lengths + #part end
    words[key] = nil
  end
end
print(count, nodes(stays), lengths)
