#!/usr/bin/env bash
# php: its modules are opened with RTLD_DEEPBIND. A data job of arrays, strings, regular expressions,
# JSON and objects, on PHP's own allocator of chunks and with each block from malloc.
. "$(dirname "$0")/common.sh"

bound php -r 'echo strlen(str_repeat("x", 1000));'
bound env USE_ZEND_ALLOC=0 php -r 'echo strlen(str_repeat("x", 1000));'
cat > job.php <<'PROGRAM'
<?php
$state = 42;
function random() {
    global $state;
    return ($state = ($state * 1103515245 + 12345) % 2147483648) >> 8;
}
$words = [];
for ($i = 0; $i < 3000; $i++) {
    $word = '';
    for ($length = 2 + random() % 9; $length > 0; $length--) $word .= chr(97 + random() % 26);
    $words[] = $word;
}
$count = []; $lines = []; $objects = [];
for ($i = 0; $i < 20000; $i++) {
    $line = [];
    for ($length = 3 + random() % 12; $length > 0; $length--) $line[] = $words[random() % 3000];
    foreach ($line as $word) $count[$word] = ($count[$word] ?? 0) + 1;
    $lines[] = implode(' ', $line);
    $objects[$i % 1000] = (object)['line' => $i, 'words' => $line];
}
ksort($count); arsort($count);
foreach (array_slice($count, 0, 20) as $word => $times) echo "$word $times\n";
$changed = 0;
foreach ($lines as &$line) $line = preg_replace('/\b(\w)(\w+)\b/', '$2$1', $line, -1, $n) and $changed += $n;
unset($line);
echo "changed $changed\n";
sort($lines);
$text = implode("\n", $lines);
echo strlen($text), ' ', hash('sha256', $text), "\n";
$json = json_encode($objects);
echo strlen($json), ' ', count(json_decode($json, true)), "\n";
echo md5(serialize(unserialize(serialize($objects)))), "\n";
echo strlen(iconv('UTF-8', 'UTF-16LE', $text)), "\n";
$tokens = token_get_all(file_get_contents(__FILE__));
echo count($tokens), ' ', implode(',', array_filter(get_loaded_extensions(), 'ctype_alpha')), "\n";
$parent = null;
for ($i = 0; $i < 20000; $i++) {
    $node = new stdClass;
    $node->self = $node;
    $node->parent = $parent;
    $parent = $i % 7 ? $node : null;
}
unset($node, $parent);
echo gc_collect_cycles() > 0 ? "cycles collected\n" : "no cycles\n";
PROGRAM
preloaded php job.php
preloaded env USE_ZEND_ALLOC=0 php job.php
