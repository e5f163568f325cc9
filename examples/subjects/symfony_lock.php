<?php
// Symfony's Lock on phpredis as a client of lockfault: docs/subject.md.

require_once is_file(__DIR__.'/vendor/autoload.php') ? __DIR__.'/vendor/autoload.php' : 'Symfony/Component/Lock/autoload.php';

use Symfony\Component\Lock\Exception\LockConflictedException;
use Symfony\Component\Lock\LockFactory;
use Symfony\Component\Lock\Store\RedisStore;

class Subject
{
    private $factory, $ttl, $locks = [];

    public function init($q): bool
    {
        $node = $q->nodes[0];
        $redis = new Redis();
        $redis->connect($node->host, $node->port, $q->read_timeout_ms / 1000, null, 0, $q->read_timeout_ms / 1000);
        $redis->auth(isset($node->username) ? [$node->username, $node->password] : $node->password);
        $redis->select($node->db ?? 0);
        $this->ttl = $q->ttl_ms / 1000;
        $this->factory = new LockFactory(new RedisStore($redis, $this->ttl));
        return true;
    }

    private function lock($q)
    {
        return $this->locks[$q->key] ??= $this->factory->createLock($q->key, $this->ttl, false);
    }

    public function acquire($q): bool
    {
        for ($until = microtime(true) + $q->within_ms / 1000; !($got = $this->lock($q)->acquire()) && microtime(true) < $until;) {
            usleep(20000);
        }
        return $got;
    }

    public function try($q): bool { return $this->lock($q)->acquire(); }

    public function release($q): bool { $this->lock($q)->release(); return true; }

    public function extend($q): bool { $this->lock($q)->refresh(); return true; }
}

$subject = new Subject();
while (($line = fgets(STDIN)) !== false && ($q = json_decode($line))->do !== 'shutdown') {
    $answer = ['id' => $q->id];
    try {
        $answer['answer'] = $subject->{$q->do}($q) ? 'ok' : 'failed';
    } catch (LockConflictedException $e) {
        $answer += ['answer' => 'failed', 'error' => $e->getMessage()];
    } catch (Exception $e) {
        $answer += ['answer' => 'error', 'error' => $e->getMessage()];
    }
    fwrite(STDOUT, json_encode($answer)."\n");
}
