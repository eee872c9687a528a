-- What wrk asks of the HTTP server: three reads for each write, with bodies of many sizes.
local number = 0

function request()
  number = number + 1
  local id = number * 7919 % 20000
  if number % 4 ~= 0 then return wrk.format("GET", "/orders/" .. id) end
  local lines = {}
  for i = 1, 1 + number % 12 do
    lines[i] = string.format('{"article":"article %d","pieces":%d,"price":%d.5}', number * i % 5000, i, number % 90)
  end
  local body = string.format('{"customer":"customer %d","note":"%s","lines":[%s]}',
    id % 500, string.rep("n", number % 200), table.concat(lines, ","))
  return wrk.format("POST", "/orders/" .. id, { ["Content-Type"] = "application/json" }, body)
end
