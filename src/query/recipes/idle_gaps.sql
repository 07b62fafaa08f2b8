-- The longest times in which a device's stream had nothing to do, and what ran before and after.
select rank, device, stream, end_ns as start_ns, next_ns - end_ns as idle_ns, name as before, next_name as after
from (select rank, device, stream, name, start_ns + dur_ns as end_ns,
             lead(start_ns) over lane as next_ns, lead(name) over lane as next_name
      from device_work where kind <> 'sync'
      window lane as (partition by rank, device, stream order by start_ns, slice))
where next_ns > end_ns order by idle_ns desc limit 100
