/* main.c: the roles of factory.c without a Go program behind them, to be built
 * with sanitizers. With PLANTED a cell reads a byte too many once it is locked
 * down (link with --wrap=cell_init): it must be seen. */
#include "../cell.h"

#include <unistd.h>

#ifdef PLANTED
void __real_cell_init(int sock) __attribute__((noreturn));
void __wrap_cell_init(int sock) __attribute__((noreturn));

void __wrap_cell_init(int sock)
{
	static char room[8];
	volatile int past = 8;

	if (room[past])
		_exit(1);
	__real_cell_init(sock);
}
#endif

int main(void)
{
	return 2; /* a role that returns is none */
}
