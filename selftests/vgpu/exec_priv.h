/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inside the interpreter. decode*.c turn a kernel, and the functions it calls, into one array of
 * decoded instructions; exec*.c and alu*.c are their handlers. A register is a row of 32 lanes of
 * 64 bits. A lane holds its value in the low bits of the register's type; what stands above them
 * has no meaning, so whoever reads a register casts it to the type of the instruction. Predicates
 * are 32-bit masks.
 */
#ifndef VGPU_EXEC_PRIV_H
#define VGPU_EXEC_PRIV_H

#include <pthread.h>
#include <string.h>
#include "rewriter/ptx/ptx.h"
#include "exec.h"

#define LANES		32
#define FULL		0xffffffffu
#define NO_PC		0xffffffffu

/*
 * Address windows of the generic space. No host address, of HOST_BITS, has these bits, so what is
 * outside of them is global. Where in their windows shared memory and parameters begin differs from
 * launch to launch: who keeps such an address for the next launch finds nothing there. Their own
 * spaces begin at 0, of parameters at WIN_PARAM.
 */
#ifdef __x86_64__
#define HOST_BITS	47
#else
#define HOST_BITS	48
#endif
#define WIN_SHIFT	40
#define WIN_SHARED	0x0001010000000000ull
#define WIN_LOCAL	0x0001020000000000ull
#define WIN_PARAM	0x0001030000000000ull
#define WIN_CODE	0x0001040000000000ull
#define WIN_OFFSET(a)	((a) & 0xffffffffffull)
#define IN_WIN(a, w)	(((a) >> WIN_SHIFT) == ((w) >> WIN_SHIFT))

#define ROWS_MAX	65536		/* registers of all frames of a thread */
#define LOCAL_MAX	(512u << 10)	/* local memory of a thread, as CUDA has it */
#define DEPTH_MAX	4096		/* calls */
#define BARRIERS	16

enum xtype {
	T_NONE, T_U8, T_U16, T_U32, T_U64, T_S8, T_S16, T_S32, T_S64, T_B8, T_B16, T_B32,
	T_B64, T_B128,
	T_F16, T_BF16, T_F16X2, T_BF16X2, T_TF32, T_F32, T_F64, T_PRED, T_U16X2, T_S16X2,
	T_E4M3X2, T_E5M2X2, T_E2M1X2, T_E2M3X2, T_E3M2X2, T_UE8M0X2, T_F32X2,
};
unsigned int xtype_size(enum xtype t);	/* bytes; 0 of a predicate */

static inline bool xtype_signed(enum xtype t)
{
	return t >= T_S8 && t <= T_S64;
}

static inline bool xtype_float(enum xtype t)
{
	return t >= T_F16 && t <= T_F64;
}

static inline bool xtype_int(enum xtype t)
{
	return t >= T_U8 && t <= T_S64;
}

enum xrnd { R_NONE, R_RN, R_RZ, R_RM, R_RP, R_RNA, R_RNI, R_RZI, R_RMI, R_RPI };
enum xspace { S_NONE, S_GLOBAL, S_SHARED, S_LOCAL, S_PARAM, S_CONST };
enum xcmp { X_NONE, X_EQ, X_NE, X_LT, X_LE, X_GT, X_GE, X_EQU, X_NEU, X_LTU, X_LEU, X_GTU, X_GEU,
	    X_NUM, X_NAN };
enum xop {	/* of atom, red, redux, bar.red, setp: what combines */
	A_NONE, A_AND, A_OR, A_XOR, A_ADD, A_INC, A_DEC, A_MIN, A_MAX, A_EXCH, A_CAS, A_POPC,
};
enum xmode { V_NONE, V_UP, V_DOWN, V_BFLY, V_IDX, V_ALL, V_ANY, V_UNI, V_BALLOT };

/* Modifiers, sorted into their classes */
enum {
	F_FTZ = 1 << 0, F_SAT = 1 << 1, F_CC = 1 << 2, F_LO = 1 << 3, F_HI = 1 << 4,
	F_WIDE = 1 << 5, F_APPROX = 1 << 6,
	F_FULL = 1 << 7, F_UNI = 1 << 8, F_SYNC = 1 << 9, F_ALIGNED = 1 << 10, F_ARRIVE = 1 << 11,
	F_RED = 1 << 12,
	F_NAN = 1 << 13, F_XORSIGN = 1 << 14, F_ABS = 1 << 15, F_WARP = 1 << 16, F_TO = 1 << 17,
	F_SHIFTAMT = 1 << 18,
	F_LEFT = 1 << 19, F_RIGHT = 1 << 20, F_CLAMP = 1 << 21, F_WRAP = 1 << 22, F_HINT = 1 << 23,
	F_ASYNC = 1 << 24,
	F_RELU = 1 << 25, F_GATHER = 1 << 26, F_EXPECT_TX = 1 << 27, F_NOCOMPLETE = 1 << 28,
	F_PARITY = 1 << 29, F_SATFINITE = 1 << 30,
};

struct xmods {
	enum xtype t[3];
	unsigned int n_types, vec, flags;
	enum xrnd rnd;
	enum xspace space;
	enum xcmp cmp;
	enum xop op;
	enum xmode mode;
	unsigned int sem;	/* fence before (1), after (2), sequentially consistent (4); not
				 * weak (8) */
	const char *word;	/* the one modifier of class C_WORD */
};

struct xctx;
struct xinsn;
/*
 * What a handler says: go on; pc was set for the whole group; the lanes' own pcs were set; the
 * block faulted
 */
enum xresult { X_NEXT, X_JUMP, X_RESCHED, X_FAULT };
typedef enum xresult xfn(struct xctx *x, const struct xinsn *in, uint32_t m);

/*
 * Operands are rows: >= 0 a register of the frame, < 0 a row of the constant pool (~o). Predicate
 * operands: 2 * number, + 1 if negated; P_TRUE, P_FALSE.
 */
#define P_TRUE		(-2)
#define P_FALSE		(-1)
#define NO_OPND		INT32_MIN

struct xinsn {
	xfn *fn;
	int32_t guard;			/* predicate, NO_OPND none */
	bool guard_neg;
	uint8_t n;			/* vector elements */
	uint8_t type, type2;		/* enum xtype */
	uint8_t rnd, cmp, op, space, mode, size, sem;
	bool a32;			/* the address register has 32 bits */
	uint32_t flags;
	uint32_t line;
	int32_t o[9];
	int32_t p[4];			/* predicates: destinations first */
	uint32_t target;		/* pc */
	int64_t imm;			/* address offset */
	void *ext;			/* struct xcall, struct xtable */
	const struct xwait *wait;	/* lanes wait here for others of their warp; NULL also:
					 * nothing is known */
	const struct gsr_insn *src;
};

/*
 * A place that is passed to or from a function: a register row, a predicate, or bytes of the
 * thread's local memory
 */
struct xarg {
	bool reg;
	int32_t row;			/* reg */
	uint32_t offset, size;		/* not reg: in the local frame */
};

struct xfunction {
	const struct gsr_function *fn;
	unsigned int index;		/* in the module */
	uint32_t pc;			/* of the first instruction; NO_PC: no body */
	uint32_t rows;			/* of its frame */
	uint32_t local;			/* bytes of its local frame, parameters included, rounded
					 * up */
	uint32_t local_used;		/* the same, as it is */
	struct xarg *args, *rets;
	unsigned int n_args, n_rets;
	bool used;			/* decoded in this kernel */
};

struct xcall {
	struct xfunction *callee;	/* NULL: indirect, address in o[1] */
	int builtin;			/* not 0: vprintf and its like */
	const struct xfunction *caller;
	struct xarg *args, *rets;
	unsigned int n_args, n_rets;
};

/*
 * decode_flow.c: lanes of the function that have gone past this instruction, which is not reached
 * again from where they are
 */
struct xwait {
	uint32_t from, n;		/* pcs of the function */
	uint32_t stop;			/* where they all come, NO_PC nowhere */
	uint64_t past[];		/* bit pc - from */
};

static inline bool wait_past(const struct xwait *w, uint32_t pc)
{
	pc -= w->from;
	return pc < w->n && w->past[pc / 64] >> pc % 64 & 1;
}

struct xtable {
	unsigned int n;
	uint32_t pc[];
};

/* More operands than an instruction has room for */
struct xrows {
	unsigned int n;
	int32_t row[];
};

/* An address beside the one in o[0] and imm */
struct xaddr {
	int32_t row;
	bool a32;
	int64_t imm;
};

struct xrange {
	uint64_t at;
	size_t size;
	bool constant;
};

struct vgpu_module {
	struct gsr_module *ptx;
	uint8_t *globals;		/* all .global and .const variables */
	size_t globals_size;
	struct xrange *ranges;		/* the variables in there, by address */
	size_t n_ranges;
	struct xsym_table *syms;
	struct gsr_function **functions;	/* every function, by index */
	unsigned int n_functions;
	uint64_t code;			/* address of the first one: no other module has it */
	struct vgpu_kernel **kernels;
	unsigned int n_kernels;
	struct vgpu_module *next;	/* all loaded modules */
};

static inline uint64_t function_address(const struct vgpu_module *m, uint64_t index)
{
	return m->code + index * 16;
}

struct vgpu_kernel {
	struct vgpu_kernel_info info;
	struct vgpu_module *module;
	struct xinsn *code;
	uint32_t n_code, code_room;
	uint64_t (*pool)[LANES];
	uint32_t n_pool, pool_room;
	struct xfunction *functions;	/* one for each of the module's */
	struct xfunction *entry;
	void **allocs;			/* what ext points to */
	size_t n_allocs, allocs_room;
	size_t shared_align;
	char *error;			/* why it cannot run; NULL it can */
};

struct xframe {
	uint32_t ret_pc, row, local, extra;	/* of the caller */
	const struct xinsn *call;
	const struct xfunction *callee;
};

struct xwarp {
	struct vgpu_block *b;
	unsigned int id;
	uint64_t (*rows)[LANES];
	uint32_t *preds;
	uint32_t rows_room;
	uint8_t *local;			/* LANES times local_room bytes */
	uint32_t local_room;
	uint32_t all, live;		/* threads that exist, that have not exited */
	uint32_t at_barrier, parked;	/* waiting for a barrier, for lanes of the warp */
	uint32_t arrived;		/* of at_barrier: counted at the barrier */
	uint32_t carry;			/* CC.CF */
	uint32_t pc[LANES], row[LANES], frame[LANES];	/* frame: local memory's */
	uint32_t extra[LANES];		/* local memory that alloca gave the frame */
	uint8_t barrier[LANES];		/* at_barrier: which */
	uint32_t bar_count[LANES];	/* at_barrier: threads it waits for, 0 all */
	uint32_t bar_pred;		/* at_barrier: what a reduction gets */
	uint32_t park_mask[LANES];	/* parked: lanes it waits for */
	struct xframe *stack[LANES];
	uint32_t depth[LANES], stack_room[LANES];
	unsigned int picks;
};

struct xbarrier {
	unsigned int arrived, expected;	/* warps; expected 0: all of the block */
	bool active, and, or;
	uint32_t popc;
};

struct vgpu_block {
	struct vgpu_launch l;
	const struct vgpu_kernel *k;
	unsigned int ctaid[3], smid;
	unsigned int n_threads, n_warps, live_warps, next;
	struct xwarp *warps;
	uint8_t *shared;
	uint32_t shared_size;
	uint64_t window;		/* offset of shared memory and of the parameters in their
					 * windows */
	struct xbarrier barriers[BARRIERS];
	struct xqueue *async;		/* copies on their way */
	struct xorder *order;		/* NULL: races are not looked for */
	struct cell *cells;		/* of shared memory; NULL: not there */
	size_t n_cells;
	uint32_t serial;		/* of blocks with cells */
	uint64_t rng;
	uint64_t poison;		/* what memory holds before it is written follows from
					 * this */
	uint64_t clock;
	unsigned int checks;		/* VGPU_CHECK_* */
	bool failed;
	enum vgpu_fault fault;
	char error[1024];
};

/* The last access that nothing orders with what a thread does now; line 0: none */
struct xsuspect {
	uint64_t addr;
	uint32_t line, block, me, thread;
	uint8_t kind, my_kind;
	bool shared;
};

struct xctx {
	struct vgpu_block *b;
	struct xwarp *w;
	const struct vgpu_kernel *k;
	uint64_t (*r)[LANES];		/* the group's frame */
	uint32_t *p;
	uint64_t (*pool)[LANES];
	uint32_t mask, pc, row;		/* the group */
	bool yield;			/* end the warp's turn */
	struct xsuspect suspect;
};

static inline const uint64_t *src(const struct xctx *x, int32_t o)
{
	return o >= 0 ? x->r[o] : x->pool[~o];
}

static inline uint64_t *dst(const struct xctx *x, int32_t o)
{
	return x->r[o];
}

static inline uint32_t pred(const struct xctx *x, int32_t p)
{
	if (p < 0)
		return p == P_TRUE ? FULL : 0;
	return p & 1 ? ~x->p[p >> 1] : x->p[p >> 1];
}

static inline void pred_set(struct xctx *x, int32_t p, uint32_t m, uint32_t v)
{
	if (p >= 0)
		x->p[p >> 1] = (x->p[p >> 1] & ~m) | (v & m);
}

/*
 * Run the statement for every lane i of m; the full mask is a plain loop that the compiler can
 * vectorise
 */
#define FOR_LANES(m, ...) do { \
	if ((m) == FULL) { \
		_Pragma("GCC ivdep") \
		for (unsigned int i = 0; i < LANES; i++) { __VA_ARGS__; } \
	} else { \
		for (uint32_t m_ = (m); m_; m_ &= m_ - 1) { \
			unsigned int i = (unsigned int)__builtin_ctz(m_); \
			__VA_ARGS__; \
		} \
	} \
} while (0)

static inline float as_f32(uint64_t v)
{
	uint32_t u = (uint32_t)v;
	float f;

	memcpy(&f, &u, 4);
	return f;
}

static inline double as_f64(uint64_t v)
{
	double d;

	memcpy(&d, &v, 8);
	return d;
}

static inline uint32_t f32_bits(float f)
{
	uint32_t u;

	memcpy(&u, &f, 4);
	return u;
}

static inline uint64_t f64_bits(double d)
{
	uint64_t u;

	memcpy(&u, &d, 8);
	return u;
}

/*
 * exec.c: exec_fault_as() for faults of a kind that callers tell apart, exec_fault() for all others
 */
enum xresult exec_fault_as(struct xctx *x, const struct xinsn *in, enum vgpu_fault kind,
			   const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
enum xresult exec_fault(struct xctx *x, const struct xinsn *in, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
bool exec_global_ok(struct vgpu_block *b, uint64_t addr, size_t size, bool write);
bool exec_const_ok(const struct vgpu_block *b, uint64_t addr, size_t size);
void exec_lane_pcs(struct xctx *x, uint32_t m, uint32_t pc);
uint32_t exec_roll(struct vgpu_block *b);
/* the caller has set the other lanes' pcs */
enum xresult exec_exit_lanes(struct xctx *x, uint32_t m);
char *exec_insn_text(const struct gsr_insn *in, char *buf, size_t size);
xfn *exec_control_select(enum gsr_opcode op, const struct xmods *md);
/* special registers, by imm: SR_* */
enum xresult x_special(struct xctx *x, const struct xinsn *in, uint32_t m);
enum xresult x_local_addr(struct xctx *x, const struct xinsn *in, uint32_t m);

enum {
	SR_TID, SR_NTID, SR_CTAID, SR_NCTAID, SR_LANEID, SR_WARPID, SR_NWARPID, SR_SMID, SR_NSMID,
	SR_GRIDID, SR_CLOCK,
	SR_CLOCK_HI, SR_CLOCK64, SR_GLOBALTIMER, SR_GLOBALTIMER_LO, SR_GLOBALTIMER_HI,
	SR_LANEMASK_EQ, SR_LANEMASK_LE,
	SR_LANEMASK_LT, SR_LANEMASK_GE, SR_LANEMASK_GT, SR_DYNAMIC_SMEM_SIZE, SR_TOTAL_SMEM_SIZE,
	SR_ZERO, SR_ONE, SR_RESERVED_SMEM, SR_WORKSPACE, SR_WORKSPACE_HI,
};

/* exec_mem.c: one thread's view. NULL: faulted */
void *mem_ptr(struct xctx *x, const struct xinsn *in, enum xspace space, unsigned int lane,
	      uint64_t addr, size_t size, size_t align, bool write);
/* The same for what threads meet at: an access that is never part of a race, and orders others */
void *mem_sync_ptr(struct xctx *x, const struct xinsn *in, enum xspace space, unsigned int lane,
		   uint64_t addr, size_t size, size_t align);
xfn *mem_ld_select(const struct xmods *md);
xfn *mem_st_select(const struct xmods *md);
xfn *mem_cvta_select(const struct xmods *md);
xfn x_isspacep, x_fence, x_prefetch;

static inline uint64_t xaddr_of(const struct xctx *x, const struct xaddr *a, unsigned int lane)
{
	uint64_t v = src(x, a->row)[lane];

	return (a->a32 ? (uint32_t)v : v) + (uint64_t)a->imm;
}

/* exec_atom.c */
uint64_t atom_apply(enum xop op, enum xtype t, void *p, uint64_t b, uint64_t c, bool shared);
xfn *atom_select(const struct xmods *md, bool red);

/* exec_mbar.c: by op; false: faulted */
enum { MB_INIT, MB_INVAL, MB_EXPECT_TX, MB_COMPLETE_TX, MB_ARRIVE, MB_ARRIVE_DROP };
xfn x_mbar, x_mbar_wait, x_mbar_pending;
void *mbar_at(struct xctx *x, const struct xinsn *in, const struct xaddr *a, unsigned int lane,
	      enum xspace space);
bool mbar_complete_tx(struct xctx *x, const struct xinsn *in, void *p, uint32_t bytes);
bool mbar_expect_arrival(struct xctx *x, const struct xinsn *in, void *p);
bool mbar_arrive(struct xctx *x, const struct xinsn *in, void *p);

/* exec_async.c */
struct xcopy {
	struct xaddr d, s, mbar;
	int32_t size, mask;		/* rows; NO_OPND none */
	int32_t ignore;			/* predicate */
	uint8_t dspace, sspace, mspace;
	bool bulk;
};
xfn x_copy, x_copy_arrive, x_copy_commit, x_copy_wait;
bool async_some(struct vgpu_block *b);	/* let some of what is on its way arrive; false: faulted */
bool async_all(struct vgpu_block *b);
void async_free(struct vgpu_block *b);

/* exec_sync.c */
xfn x_bar_sync, x_bar_arrive, x_bar_red, x_shfl, x_vote, x_match, x_redux, x_warp_sync, x_elect,
	x_activemask;
/*
 * For F_GATHER: have all threads of the warp come? false: they wait here, the handler says
 * X_RESCHED
 */
bool sync_gather(struct xctx *x, const struct xinsn *in, uint32_t m);
/* lanes of x->w have exited: whom does that release? */
enum xresult sync_exited(struct xctx *x);
void sync_describe(struct vgpu_block *b, char *buf, size_t size);
/*
 * Lanes of the warp wait for others of it: have these gone past them? Else *stop is where the
 * picked group would.
 */
enum xresult sync_passed(struct xctx *x, uint32_t *stop);
bool sync_waits(xfn *fn);		/* do lanes wait there for others of their warp? */

/* lanes that have arrived at a barrier and wait */
uint32_t sync_here(const struct xwarp *w, unsigned int id);

/*
 * exec_race.c: one thread's access. False: faulted. XA_STORE: a plain write that reports itself, if
 * it changes the value
 */
enum { XA_READ = 1, XA_WRITE = 2, XA_STRONG = 4, XA_RELEASE = 8, XA_STORE = 16 };
bool race_new(struct vgpu_block *b);
void race_free(struct vgpu_block *b);
bool race_access(struct xctx *x, const struct xinsn *in, unsigned int lane, bool shared,
		 uint64_t addr, size_t size, unsigned int kind);
bool race_report(struct xctx *x, const struct xinsn *in);

/*
 * exec_order.c: barriers, fences, bar.warp.sync. @all: of all threads, those that have exited too
 */
void order_arrive(struct xorder *o, unsigned int id, unsigned int warp, uint32_t m);
void order_barrier(struct vgpu_block *b, unsigned int id, bool all);
void order_lanes(struct xorder *o, unsigned int warp, uint32_t m);
void order_fence(struct xorder *o, unsigned int t);

/* exec_check.c: garbage, which @salt tells from other garbage of the block */
void poison_fill(const struct vgpu_block *b, void *p, size_t size, uint64_t salt);

/* exec_call.c */
xfn x_call, x_ret, x_alloca, x_stacksave, x_stackrestore;
int call_builtin(const char *name);	/* 0: none of that name */

/* exec_heap.c */
uint64_t heap_alloc(const struct vgpu_block *b, uint64_t size);
bool heap_free(uint64_t addr);
bool heap_covers(uint64_t addr, size_t size);

/* alu*.c: NULL if there is no such instruction */
xfn *alu_int_select(enum gsr_opcode op, const struct xmods *md);
xfn *alu_bits_select(enum gsr_opcode op, const struct xmods *md);
xfn *alu_float_select(enum gsr_opcode op, const struct xmods *md);
xfn *alu_half_select(enum gsr_opcode op, const struct xmods *md);
xfn *alu_cmp_select(enum gsr_opcode op, const struct xmods *md);
xfn *alu_cvt_select(const struct xmods *md);
xfn x_mov, x_mov_pred, x_mov_pack, x_mov_unpack;

/* alu_half.c: conversions exact in one rounding. @v is taken as exact. */
uint16_t half_from_f64(double v, bool bf, enum xrnd rnd);
double half_to_f64(uint16_t h, bool bf);

/* alu_mini.c: formats of 8 bits and less */
struct mini {
	uint8_t mant, bias;		/* bits of the mantissa */
	uint8_t max, nan, inf, sign;	/* 0: there is none */
};
extern const struct mini mini_e4m3, mini_e5m2;
double mini_to_f64(uint8_t v, const struct mini *f);
xfn *alu_mini_select(const struct xmods *md);

/* alu_mixed.c: the operation in mode */
xfn *alu_mixed_select(enum gsr_opcode op, const struct xmods *md);
xfn x_setp_x2, x_set_half;

xfn x_cvt_pack;

/* decode_mods.c */
#define C_TYPE (1u << 0)
#define C_RND (1u << 1)
#define C_FTZ (1u << 2)
#define C_SAT (1u << 3)
#define C_CC (1u << 4)
#define C_MUL (1u << 5)		/* lo hi wide */
#define C_APPROX (1u << 6)	/* approx full */
#define C_SPACE (1u << 7)
#define C_VEC (1u << 8)
#define C_SEM (1u << 9)
#define C_CACHE (1u << 10)
#define C_CMP (1u << 11)
#define C_OP (1u << 12)
#define C_BAR (1u << 13)
#define C_SHIFT (1u << 14)
#define C_MODE (1u << 15)
#define C_UNI (1u << 16)
#define C_NAN (1u << 17)
#define C_WORD (1u << 18)	/* anything else, one: in word */
#define C_TO (1u << 19)
#define C_SYNC (1u << 20)
#define C_ASYNC (1u << 21)
#define C_RELU (1u << 22)	/* relu satfinite */
bool mods_parse(const struct gsr_insn *in, unsigned int allow, struct xmods *md);
enum xtype xtype_parse(const char *name);

/* decode_var.c */
struct xsym {
	const char *name;
	enum { SYM_NONE, SYM_GLOBAL, SYM_CONST, SYM_SHARED, SYM_FUNCTION } kind;
	uint64_t value;			/* GLOBAL, CONST: address; FUNCTION: index */
	const struct gsr_var *var;
	size_t size;
};
size_t var_size(const struct gsr_var *v);
size_t var_align(const struct gsr_var *v);
bool vars_load(struct vgpu_module *m, char *err, size_t err_size);
void vars_free(struct vgpu_module *m);
/* NULL: not within one */
const struct xrange *vars_range(const struct vgpu_module *m, uint64_t addr, size_t size);
const struct xsym *vars_find(const struct vgpu_module *m, const char *name);
const struct xsym *vars_find_var(const struct vgpu_module *m, const struct gsr_var *var);

/* decode_kernel.c: false: k->error says why (or is NULL: out of memory) */
bool kernel_decode(struct vgpu_kernel *k, const struct gsr_function *fn);

/* decode_live.c: an estimate of the 32-bit registers that are live at once */
unsigned int kernel_regs(const struct gsr_function *fn);

#endif /* VGPU_EXEC_PRIV_H */
