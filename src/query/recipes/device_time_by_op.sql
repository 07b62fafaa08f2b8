-- Device time by the operator that launched the work: kernels and the sum of their time.
select s.name as op, count(*) as works, sum(d.dur_ns) as device_ns
from device_work d join slices s on s.rank = d.rank and s.slice = d.op
where d.kind <> 'sync' group by s.name order by device_ns desc
