# Words into hashes, counts by key, a hash of arrays, and keys in order. The argument is the number of words.
use strict;
use warnings;

my $words = shift;
my (%count, %places, $state);
$state = 12345;
for my $at (1 .. $words) {
    $state = ($state * 1103515245 + 12345) % 2147483648;
    my $word = "word" . ($state >> 8) % (1 + $words / 4);
    $count{$word}++;
    push @{ $places{ substr $word, 0, 6 } }, $at;
}
my $lengths = 0;
$lengths += length("$_=$count{$_}") for keys %count;
my @hottest = (sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count)[0 .. 9];
print "$_ $count{$_}\n" for grep { defined } @hottest;
print "$_ ", scalar @{ $places{$_} }, "\n" for sort keys %places;
delete @count{ grep { /7/ } keys %count };
print scalar(keys %count), " $lengths\n";
