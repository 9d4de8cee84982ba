// A chat: starts what its parts need, in this order.

import { startCommands } from "./commands.js";
import { startComposer } from "./composer.js";
import { startConnection } from "./connection.js";
import { startChatMenu } from "./chat_menu.js";
import { startLimitNote } from "./limit_note.js";
import { startLongText } from "./long_text.js";
import { startMessageActions } from "./message_actions.js";
import { startPicker } from "./picker.js";
import { startPrompts } from "./prompts.js";
import { startQueue } from "./queue.js";
import { startRatings } from "./rating.js";
import { startRecorder } from "./recorder.js";
import { startRuns } from "./run.js";
import { startScrolling } from "./scroll.js";
import { startSharing } from "./sharing.js";
import { startUploads } from "./uploads.js";

startRuns();
startConnection();
startUploads(); // before the composer: a message may have to wait for its files
startRecorder();
startComposer();
startLongText();
startPicker();
startCommands();
startPrompts();
startQueue();
startMessageActions();
startRatings();
startScrolling();
startSharing();
startChatMenu();
startLimitNote();
