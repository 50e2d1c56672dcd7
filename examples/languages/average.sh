printf '%s\n' 2 4 6 | awk '{ sum += $1 } END { print "mean:", sum / NR }'
