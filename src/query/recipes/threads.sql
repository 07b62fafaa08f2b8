-- Host threads by the time of their outermost slices.
select s.rank, s.process, s.thread, t.thread_name, count(*) as slices, sum(s.dur_ns) as total_ns
from slices s join tracks t on t.rank = s.rank and t.track = s.track
where s.depth = 0 and not t.device group by s.rank, s.track order by total_ns desc
