# A lock of one's own, SET NX PX and a script, on ruby-redis, as a client of
# lockfault: docs/subject.md.
require 'json'
require 'redis'
require 'securerandom'

# Lets another's key be.
IF_MINE = 'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call(%s) end return 0'
DELETE = format(IF_MINE, '"del", KEYS[1]')
PROLONG = format(IF_MINE, '"pexpire", KEYS[1], ARGV[2]')

class Subject
  def init(q)
    node = q['nodes'][0]
    @ttl = q['ttl_ms']
    @values = {}
    @redis = Redis.new(host: node['host'], port: node['port'], username: node['username'], password: node['password'],
                       db: node['db'] || 0, timeout: q['read_timeout_ms'] / 1000.0, reconnect_attempts: q['retries'] || 0)
    @redis.ping
    true
  end

  def try(q)
    value = SecureRandom.hex
    @redis.set(q['key'], value, nx: true, px: @ttl) && @values[q['key']] = value
  end

  def acquire(q)
    deadline = now + q['within_ms'] / 1000.0
    sleep 0.02 until (got = try(q)) || now > deadline
    got
  end

  def release(q)
    @redis.eval(DELETE, [q['key']], [@values[q['key']].to_s]) == 1
  end

  def extend(q)
    @redis.eval(PROLONG, [q['key']], [@values[q['key']].to_s, @ttl]) == 1
  end

  private def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end

$stdout.sync = true
subject = Subject.new
$stdin.each_line do |line|
  q = JSON.parse(line)
  break if q['do'] == 'shutdown'

  answer = { id: q['id'] }
  begin
    answer[:answer] = subject.public_send(q['do'], q) ? 'ok' : 'failed'
  rescue Redis::BaseError => e
    answer.update(answer: 'error', error: e.message)
  end
  puts JSON.generate(answer)
end
