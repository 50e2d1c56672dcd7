package redis

import goredis "github.com/redis/go-redis/v9"

// library are the functions that scripts have before them.
const library = `
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2]) -- microseconds
local millis = math.floor(now / 1000)
local day = tostring(math.floor(now / 86400000000))

-- left is what a bucket has, and when that is so. The bucket is not behind the time that it was
-- written at: a clock that is set back gives nothing.
local function left(key, most)
  local b = redis.call('HMGET', key, 'left', 'at')
  local at = math.max(tonumber(b[2]) or now, now)
  return math.min(most, (tonumber(b[1]) or most) + (at - (tonumber(b[2]) or now)) * most / 60000000), at
end
-- fill writes it. A bucket that is not written to for a minute is full, and is so if it is gone.
local function fill(key, amount, at)
  redis.call('HSET', key, 'left', string.format('%.6f', amount), 'at', string.format('%.0f', at))
  redis.call('PEXPIRE', key, 60000)
end
-- used is the CPU time of this day, of all services.
local function used(key)
  local sum, all = 0, redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    if all[i] ~= 'day' then
      sum = sum + tonumber(all[i + 1])
    elseif all[i + 1] ~= day then
      return 0
    end
  end
  return sum
end
local function lease(key, place, time)
  redis.call('ZADD', key, millis + time, place)
  redis.call('PEXPIRE', key, time)
end
`

// scripts are what the server runs. Times are in microseconds, leases in milliseconds.
type scripts struct{ request, begin, settle, meet *goredis.Script }

func newScripts() scripts {
	script := func(text string) *goredis.Script { return goredis.NewScript(library + text) }
	return scripts{
		// KEYS requests; ARGV a minute's. Returns how long there is none.
		request: script(`
local most = tonumber(ARGV[1])
local amount, at = left(KEYS[1], most)
if amount < 1 then return math.ceil((1 - amount) * 60000000 / most) end
fill(KEYS[1], amount - 1, at)
return 0`),
		// KEYS runs, cpu; ARGV place, runs at once, lease, CPU time a day.
		// Returns full, spent, CPU time used, places taken, now.
		begin: script(`
local most, budget, cpu, taken = tonumber(ARGV[2]), tonumber(ARGV[4]), 0, 0
if budget > 0 then
  cpu = used(KEYS[2])
  if cpu >= budget then return {0, 1, cpu, 0, now} end
end
if most > 0 then
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', millis)
  taken = redis.call('ZCARD', KEYS[1])
  if taken >= most then return {1, 0, cpu, taken, now} end
  taken = taken + 1
  lease(KEYS[1], ARGV[1], tonumber(ARGV[3]))
end
return {0, 0, cpu, taken, now}`),
		// KEYS runs, cpu, requests; ARGV service, lease, day, CPU time, requests left at most, a
		// minute's, how many places have ended, these, those that are held. Returns CPU time used.
		settle: script(`
local ended = 7 + tonumber(ARGV[7])
for i = 8, ended do redis.call('ZREM', KEYS[1], ARGV[i]) end
for i = ended + 1, #ARGV do lease(KEYS[1], ARGV[i], tonumber(ARGV[2])) end
if ARGV[3] == day and tonumber(ARGV[4]) > 0 then
  if redis.call('HGET', KEYS[2], 'day') ~= day then
    redis.call('DEL', KEYS[2])
    redis.call('HSET', KEYS[2], 'day', day)
  end
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[4])
  redis.call('EXPIRE', KEYS[2], 86400)
end
local most = tonumber(ARGV[6])
if tonumber(ARGV[5]) < most then
  local amount, at = left(KEYS[3], most)
  fill(KEYS[3], math.min(amount, tonumber(ARGV[5])), at)
end
return used(KEYS[2])`),
		// KEYS services; ARGV service, lease, whether it leaves. Returns now, whether it is
		// new, and all that are there.
		meet: script(`
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', millis)
if ARGV[3] == '1' then
  redis.call('ZREM', KEYS[1], ARGV[1])
  return {now, 0, redis.call('ZRANGE', KEYS[1], 0, -1)}
end
local new = redis.call('ZADD', KEYS[1], millis + tonumber(ARGV[2]), ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {now, new, redis.call('ZRANGE', KEYS[1], 0, -1)}`),
	}
}
