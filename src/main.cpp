#include "cli/cli.h"

int main(int argc, char** argv) { return megalith::run_command_line(argc, argv); }
