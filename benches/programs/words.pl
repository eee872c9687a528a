# Hashes, regular expressions, sorting, joining and splitting of generated text.
# Usage: perl words.pl PERCENT
use strict;
use warnings;

my $percent = shift;
my ($seed, @lines) = (42);
my $lines = 1 + 300 * $percent;

sub number {
    $seed = ($seed * 1103515245 + 12345) & 0x7fffffff;
    return ($seed >> 8) % shift;
}

for my $i (1 .. $lines) {
    my @words = map { join '', map { chr 97 + number(26) } 0 .. number(9) } 1 .. 3 + number(6);
    push @lines, join ' ', @words, $i;
}
my (%count, %by_first, $swaps);
for my $line (@lines) {
    for my $word (split / /, $line) {
        $count{$word}++;
        push @{ $by_first{ substr $word, 0, 2 } }, $word;
    }
    (my $turned = $line) =~ s/(\w+) (\w+)/$2 $1/g;
    $swaps += () = $turned =~ /[aeiou][^aeiou ]/g;
}
my @sorted = sort { $count{$b} <=> $count{$a} or $a cmp $b } keys %count;
my $joined = 0;
for my $first (sort keys %by_first) {
    $joined += length join ',', sort @{ $by_first{$first} };
    delete $by_first{$first} if $joined % 2;
}
print scalar(@sorted), " $swaps $joined $sorted[0]\n";
