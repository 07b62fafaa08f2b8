/* stepscope.h: the C ABI of libstepscope.so, the one way in for Python and every other language.
 *
 * Open traces as one run, ask for answers as JSON (docs/report-json.md), take tables as Arrow streams.
 *
 * Errors: a function that can fail takes `char** error`. On failure it returns NULL (or a number other than 0) and,
 * when `error` is not NULL, sets *error to JSON text {"kind", "message", "file", "offset", "hint"} (file, offset and
 * hint are null where there is nothing to say; kind is one of not_found, unreadable, unrecognized, malformed,
 * too_large, changed, unsupported, usage, internal). On success *error is set to NULL. Memory: every `char*` that is
 * returned or set belongs to the caller and is freed with stepscope_free_text; every `const char*` is static. All text
 * is UTF-8 and ends with NUL. Threads: any function may be called from any thread. One run may be used from many
 * threads at once; only stepscope_close must not run beside another call on the same handle. One Arrow stream must be
 * used by one thread at a time; its batches belong to whoever took them. No function keeps a lock while it calls back.
 * Lifetime: streams and batches keep the data alive that they show; a run may be closed while they are in use.
 * Growth: functions are only added. stepscope_abi_version() counts additions; stepscope_options grows at its end.
 */
#ifndef STEPSCOPE_H
#define STEPSCOPE_H

#include <stddef.h>
#include <stdint.h>

#include "stepscope/arrow.h"

#if defined(__GNUC__)
#define STEPSCOPE_API __attribute__((visibility("default")))
#else
#define STEPSCOPE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define STEPSCOPE_ABI_VERSION 5

/* What was opened together; opaque. */
typedef struct stepscope_run stepscope_run;

typedef struct stepscope_options {
  size_t struct_size;     /* sizeof(stepscope_options) as the caller knows it */
  int32_t use_cache;      /* 0: neither read nor write the cache */
  uint32_t threads;       /* 0: all cores this process may use */
  const char* rules_path; /* the user's class rules; NULL or "": none */
  /* Called now and then from a thread of stepscope's, never two at once; NULL: not called. share is 0..1. */
  void (*progress)(void* user, const char* what, double share);
  void* user;
  const char* peaks_path;      /* what devices can do; NULL or "": the built-in table, and STEPSCOPE_PEAKS */
  const char* flop_rules_path; /* FLOP of the user's kernels; NULL or "": none but STEPSCOPE_FLOP_RULES */
} stepscope_options;

/* "0.1.0" */
STEPSCOPE_API const char* stepscope_version(void);
/* STEPSCOPE_ABI_VERSION of the library, to be compared with that of the header. */
STEPSCOPE_API uint32_t stepscope_abi_version(void);

STEPSCOPE_API void stepscope_free_text(char* text);

/* Opens files, folders and glob patterns as one run, one trace per rank. `options` may be NULL: cache on, all cores. */
STEPSCOPE_API stepscope_run* stepscope_open(const char* const* paths, size_t count, const stepscope_options* options,
                                            char** error);
/* Gives the handle back; NULL is allowed. Streams taken from it stay valid. */
STEPSCOPE_API void stepscope_close(stepscope_run* run);

/* JSON array of the names that stepscope_report takes, in report order. */
STEPSCOPE_API char* stepscope_answer_names(char** error);
/* The report as JSON with the named answers; all of them when count is 0. */
STEPSCOPE_API char* stepscope_report(stepscope_run* run, const char* const* names, size_t count, char** error);
/* What to change first, as JSON: the findings, those worth most first (docs/report-json.md, `stepscope advise --json`).
 */
STEPSCOPE_API char* stepscope_advise(stepscope_run* run, char** error);

/* JSON array of the tables that stepscope_table takes:
 *   [{"name", "meaning", "rows", "columns": [{"name", "type", "unit", "meaning"}]}]
 * `type` is integer, real, text or boolean; `unit` as in docs/report-json.md.
 * with_answers = 0 lists the tables of the trace model only; else those of all answers too ("answers.NAME.TABLE"), for
 * which the answers are computed. */
STEPSCOPE_API char* stepscope_tables(stepscope_run* run, int with_answers, char** error);

/* The table `name` as an Arrow stream: one record batch per trace, strings as dictionaries (the same one in every
 * batch), absent values as nulls. Each field carries the metadata "unit" and "meaning", the schema "stepscope.table"
 * and "stepscope.meaning". Fills *out and returns 0; on failure returns 1 and sets out->release to NULL. */
STEPSCOPE_API int stepscope_table(stepscope_run* run, const char* name, struct ArrowArrayStream* out, char** error);

/* What a query may use. */
typedef struct stepscope_query_limits {
  size_t struct_size;    /* sizeof(stepscope_query_limits) as the caller knows it */
  double seconds;        /* 0: 30 */
  uint64_t rows;         /* 0: all */
  uint64_t memory_bytes; /* of sorting and joining; 0: 2 GiB */
} stepscope_query_limits;

/* The rows of an SQL statement (a SELECT in SQLite's dialect, or .tables, .schema, .recipes) as an Arrow stream of one
 * batch. Tables are those of stepscope_tables under names that SQL takes ("answers.idle.causes" is idle_causes).
 * `limits` may be NULL; `cut` too: it is set to 1 when there were more rows than limits->rows, else to 0. Since 2. */
STEPSCOPE_API int stepscope_query(stepscope_run* run, const char* sql, const stepscope_query_limits* limits,
                                  struct ArrowArrayStream* out, int32_t* cut, char** error);

/* JSON text of the arguments of a slice, read again from its file. `rank` and `slice` as in the table "slices". */
STEPSCOPE_API char* stepscope_slice_text(stepscope_run* run, int64_t rank, uint32_t slice, char** error);

/* Writes the five pages of the state of memory (docs/memory.md) beside the memory_state.json that lies in `folder`.
 * Returns 0; on failure 1, among others where the library was built without the page. Since 4. */
STEPSCOPE_API int stepscope_memory_pages(const char* folder, char** error);

/* A stream on the heap, as a capsule needs it: made empty (release is NULL); released where its owner has not moved it
 * away, then freed. */
STEPSCOPE_API struct ArrowArrayStream* stepscope_stream_new(void);
STEPSCOPE_API void stepscope_stream_free(struct ArrowArrayStream* stream);

/* For CPython's capsules, without linking to CPython: the destructor frees the stream that is the capsule's context.
 * stepscope_capsule_setup must be called once before with the address of PyCapsule_GetContext. The destructor is C, so
 * that it can run while an interpreter shuts down. */
STEPSCOPE_API void stepscope_capsule_setup(void* (*get_context)(void* capsule));
STEPSCOPE_API void stepscope_capsule_free(void* capsule);

/* Counts of Arrow arrays, schemas and streams that were handed out and not yet released; for tests of callers. */
STEPSCOPE_API int64_t stepscope_alive(void);

#ifdef __cplusplus
}
#endif

#endif /* STEPSCOPE_H */
