-- Steps of each rank: time on the host and until the work that they launched ended.
select rank, step, name, end_ns - start_ns as host_ns, device_end_ns - start_ns as whole_ns, partial
from steps order by rank, step
