// The program that users call. It starts fast, because it links neither LibTorch nor MPI.
#include "cli/cli.h"

int main(int argc, char** argv) { return megalith::run_command_line(argc, argv, nullptr); }
