-- Device work by class and family on each rank.
select rank, class, family, count(*) as works, sum(dur_ns) as total_ns
from device_work where class is not null group by rank, class, family order by rank, total_ns desc
