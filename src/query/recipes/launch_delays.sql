-- The longest times between a launch and the start of its work: how far the device was behind the host.
select d.rank, d.name, d.start_ns, d.start_ns - (l.start_ns + l.dur_ns) as delay_ns, d.dur_ns, l.name as launch
from device_work d join slices l on l.rank = d.rank and l.slice = d.launch
where d.kind = 'kernel' order by delay_ns desc limit 100
