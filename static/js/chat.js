import { offerCommands } from "./commands.js";
import { compose } from "./composer.js";
import { watch } from "./connection.js";
import { queue } from "./queue.js";
import { rate } from "./rating.js";
import { start } from "./run.js";
import { follow } from "./scroll.js";
import { tend } from "./sessions.js";
import { share } from "./sharing.js";

start();
watch();
tend();
compose();
offerCommands();
queue();
rate();
follow();
share();
