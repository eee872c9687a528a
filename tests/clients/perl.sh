#!/usr/bin/env bash
# perl: a data job of hashes, sorting, regular expressions and growing strings on generated input.
. "$(dirname "$0")/common.sh"

bound perl -e 'my %h = map { $_ => 1 } 1 .. 100'
cat > job.pl <<'PROGRAM'
use strict; use warnings; use Digest::SHA qw(sha256_hex);
my $state = 42;
sub random { $state = ($state * 1103515245 + 12345) % 2147483648; return $state >> 8; }
my @words = map { join '', map { chr(97 + random() % 26) } 1 .. 2 + random() % 9 } 1 .. 5000;
my (%count, %follow, @lines);
for my $line (1 .. 60000) {
    my @line = map { $words[random() % @words] } 1 .. 3 + random() % 12;
    $count{$_}++ for @line;
    push @{ $follow{$line[$_]}{$line[$_ + 1]} }, $line for 0 .. $#line - 1;
    push @lines, join ' ', @line;
}
my @top = (sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count)[0 .. 19];
print "$_ $count{$_} ", scalar(keys %{ $follow{$_} // {} }), "\n" for @top;
my $changed = 0;
for (@lines) { $changed += s/\b(\w)(\w+)\b/$2$1/g; $changed += tr/aeiou/AEIOU/; }
print "changed $changed\n";
my $text = ''; $text .= "$_\n" for sort @lines;
print length($text), ' ', sha256_hex($text), "\n";
delete $follow{$_} for grep { $count{$_} % 2 } keys %follow;
print scalar(keys %follow), "\n";
PROGRAM
preloaded perl job.pl
