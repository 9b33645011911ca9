/* main.c: the roles of factory.c without a Go program behind them, to be built
 * with sanitizers. With PLANTED a cell reads a byte too many once it is locked
 * down (link with --wrap=cell_init): it must be seen. */
#include "../cell.h"

#include <stdlib.h>
#include <unistd.h>

#ifdef PLANTED
void __real_cell_init(int sock, int terminal, int workspace) __attribute__((noreturn));
void __wrap_cell_init(int sock, int terminal, int workspace) __attribute__((noreturn));

void __wrap_cell_init(int sock, int terminal, int workspace)
{
	char *volatile room = calloc(1, 8);

	if (room[8])
		_exit(3);
	__real_cell_init(sock, terminal, workspace);
}
#endif

int main(void)
{
	return 2; /* a role that returns is none */
}
